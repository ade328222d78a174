"""What the parts of a ferry spec have in common: a location as text that can be parsed, a dataset's names."""

from __future__ import annotations

from podferry.contract.dataset_reference import Reference, parse_reference
from podferry.contract.http_api import DATASET_VARIABLE
from podferry.contract.uri import Uri, parse_uri


class NamedDataset:
    """A dataset with a `reference`, and a `name` that is empty for the unnamed one."""

    __slots__ = ()
    reference: str
    name: str

    @property
    def parsed(self) -> Reference:
        """The reference; raises InvalidSpec, but never after `decode_spec` or `read_annotations`."""
        return parse_reference(self.reference)

    @property
    def origin(self) -> Reference:
        """Where the data comes from: a policy allows this location, and a frozen reference is of it."""
        return self.parsed

    @property
    def variable(self) -> str:
        """The trainer's variable with its path: `PODFERRY_DATASET` or `PODFERRY_DATASET_NAME`."""
        return "_".join(filter(None, (DATASET_VARIABLE, self.name.upper().replace("-", "_"))))

    def key(self, key: str) -> str:
        """This dataset's variant of a key, without the prefix: `dataset-size` as `dataset-size.NAME`."""
        return f"{key}.{self.name}" if self.name else key


class Destination:
    """Something with a `uri` that files are uploaded to."""

    __slots__ = ()
    uri: str

    @property
    def parsed(self) -> Uri:
        """The destination; raises InvalidSpec, but never after `decode_spec` or `read_annotations`."""
        return parse_uri(self.uri)
