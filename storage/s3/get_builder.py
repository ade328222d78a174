"""Which request fetches an object from S3, or from what speaks S3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from podferry.contract.errors import CredentialsMissing
from podferry.contract.manifest import Entry
from podferry.storage.credentials.refresh import Refreshed
from podferry.storage.credentials.sources import AwsSource
from podferry.storage.request_builder import AGENT, Address, fits, match_line, range_line, request_address
from podferry.storage.s3.crt_signer import signer_for
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.sigv4 import Keys, Signature

AS_IT_IS = re.compile(r"[A-Za-z0-9/._~-]+")
"""Names without a letter that is encoded. Source: RFC 3986, 2.3."""
CHECKSUMS = "x-amz-checksum-mode: ENABLED\r\n"


class S3GetBuilder:
    """See `podferry.storage.request_builder.RequestBuilder`.

    Attributes:
        origin: Where connections go; with the bucket in the host's name where the store is opened so.
    """

    checksum_needs_head = True

    def __init__(self, access: S3Access, address: Address, keys: Refreshed[Keys] | None) -> None:
        self.origin = address.origin
        key = access.uri.key
        self._above = f"{address.path}/{quote(key)}/" if key else f"{address.path}/"
        self._lines = f" HTTP/1.1\r\nHost: {address.host}\r\n{AGENT}"
        self._region = access.region
        self._host = address.host
        self._keys = keys
        self._signature: Signature | None = None

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`.

        Raises:
            CredentialsMissing: There are no keys, or the public one cannot stand in a request.
        """
        del entries  # the same keys sign them all
        if self._keys is None:
            return
        before = self._keys.held
        await self._keys.renew()
        found = self._keys.held
        if found is None or found == before:
            return
        if not fits(found.key + (found.token or "")):
            raise CredentialsMissing.of(
                "a key or token of S3 holds what no header may", "", "Store it without line ends"
            )
        self._signature = Signature(found, self._region, self._host)

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`. The range is not signed, as S3 does not ask for it.

        Checksums are asked for with the whole object only: with a range S3 has none to state.

        Raises:
            CredentialsMissing: Nothing has been prepared.
        """
        # Most names are sent as they are; finding that out takes less than half of encoding them.
        path = self._above + (entry.name if AS_IT_IS.fullmatch(entry.name) else quote(entry.name))
        ranged = range_line(entry, start, length)
        signed = self._signed(method, path, not ranged)
        return f"{method} {path}{self._lines}{ranged}{match_line(entry.tag)}{signed}\r\n".encode("ascii")

    def _signed(self, method: str, path: str, checksums: bool) -> str:
        if self._signature is not None:
            return self._signature.lines(method, path, checksums)
        if self._keys is not None:
            raise CredentialsMissing.of("requests are not signed yet", "", "Prepare them first")
        return CHECKSUMS if checksums else ""


def get_builder_for(access: S3Access, bundle: str = "") -> S3GetBuilder | None:
    """How objects of a store are asked for.

    None where only the engine can: a proxy is between, or credentials come from where Amazon's library would
    find other ones.

    Args:
        access: How the store is reached.
        bundle: A file of certificates, where the engine has one of its own.
    """
    address = request_address(access.bucket_url, bundle)
    if address is None or not fits(access.region):
        return None
    if access.source is AwsSource.ANONYMOUS:
        return S3GetBuilder(access, address, None)
    if access.source is AwsSource.KEYS:
        keys = Refreshed(lambda: Keys(*access.keys()), lasting=access.renewed is None)
        return S3GetBuilder(access, address, keys)
    signer = signer_for(access)
    return None if signer is None else S3GetBuilder(access, address, Refreshed(signer.keys))
