"""A cache that pods of a namespace may read from."""

from __future__ import annotations

import msgspec


class KnownCache(msgspec.Struct, frozen=True):
    """A Service in front of holders.

    Attributes:
        name: Of the cache: what a pod may name instead of the dataset's URI.
        source: The dataset's URI, with its digest if it is frozen.
        url: `http://ADDRESS:PORT` of the Service: no variables of Services cross namespaces.
        namespace: The Service's.
        claim: A bound claim of the pods' own namespace, through which holders share the dataset; or empty.
    """

    name: str
    source: str
    url: str
    namespace: str
    claim: str = ""

    @property
    def uri(self) -> str:
        """The dataset's URI, without a digest: in a URI, `#` is escaped."""
        return self.source.partition("#")[0]
