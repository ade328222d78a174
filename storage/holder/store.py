"""A store whose files come from a holder where it has them, and from the store itself otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from podferry.contract.bundle import bundle_name
from podferry.contract.cache_api import HeldDataset, bundle_path, file_path
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import DIGEST_BYTES, Checksum, ChecksumKind, matches
from podferry.storage.holder.client import HolderClient
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.network.settings import DIRECT
from podferry.storage.request_builder import RequestBuilder, request_address
from podferry.storage.store import Body, Store, WriteMode

NOT_HELD: tuple[Entry | None, int, int] = None, 0, 0
BUNDLE = "/"
"""What the name of a bundle begins with in a request, and that of no file."""


class HeldGetBuilder(PlainGetBuilder):
    """Builds requests for what a holder has. See `podferry.storage.request_builder.PartialRequestBuilder`."""

    def __init__(self, plain: PlainRequest, has: Callable[[Entry], bool]) -> None:
        super().__init__(plain)
        self._has = has

    def serves(self, entry: Entry) -> bool:
        """See `PartialRequestBuilder.serves`."""
        return self._has(entry)


class HolderStore:
    """See `podferry.storage.store.Store`; what is not read from the holder is the origin's.

    Args:
        origin: The dataset's own store; closed with this one.
        client: The holder's; closed with this one.
        held: What the holder has.
    """

    header_lines = ""
    multipart = None
    server_copy = None

    def __init__(self, origin: Store, client: HolderClient, held: HeldDataset) -> None:
        self.origin, self._client, self._digest = origin, client, held.manifest.digest
        self._bundles = held.bundles
        checked = enumerate(zip(held.manifest.entries, held.checksums, strict=True))
        self._held = {entry.name: (entry, checksum, number) for number, (entry, checksum) in checked}

    @property
    def uri(self) -> Uri:
        """See `Store.uri`."""
        return self.origin.uri

    @property
    def exclusive_create(self) -> bool:
        """See `Store.exclusive_create`."""
        return self.origin.exclusive_create

    def checksum_of(self, entry: Entry) -> Checksum | None:
        """What the holder has computed of this version of a file, or None if it does not have it."""
        known, value, _ = self._held.get(entry.name, NOT_HELD)
        kind = ChecksumKind.CRC64NVME
        return Checksum(kind, value.to_bytes(DIGEST_BYTES[kind], "big")) if known == entry else None

    def position_of(self, entry: Entry) -> int | None:
        """See `BundlingStore.position_of`: in the holder's manifest."""
        known, _, position = self._held.get(entry.name, NOT_HELD)
        return position if self._bundles and known == entry else None

    def bundle_of(self, positions: Sequence[int], size: int) -> Entry:
        """See `BundlingStore.bundle_of`."""
        return Entry(BUNDLE + bundle_name(positions), size)

    @cached_property
    def request_builder(self) -> RequestBuilder | None:
        """Of the holder. The digest in the path is the version of its files, so no tag is compared."""
        address = request_address(self._client.url, DIRECT)
        if address is None:
            return None
        address = replace(address, origin=replace(address.origin, tag_field=""))
        above, digest, token = address.path, self._digest, self._client.header_lines
        plain = PlainRequest(
            address,
            lambda name: above + _path(digest, name),
            self.header_lines,
            matches=False,
            token=token,
        )
        return HeldGetBuilder(plain, self._has)

    def _has(self, entry: Entry) -> bool:
        """Whether the holder has this version of a file; a bundle is made of such files."""
        return entry.name.startswith(BUNDLE) or self._held.get(entry.name, NOT_HELD)[0] == entry

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        entry, _, _ = self._held.get(name, NOT_HELD)
        if entry is not None and tag in {"", entry.tag} and size in {None, entry.size}:
            wanted = entry.size - start if length is None else length
            data = await self._client.read(self._digest, name, start, wanted) if wanted > 0 else None
            if data is not None and self._is_right(entry, data):
                return data
        return await self.origin.read(name, start, length, tag, size)

    def _is_right(self, entry: Entry, data: memoryview) -> bool:
        """Whether bytes that may be a complete file are those that the holder has verified."""
        expected = self.checksum_of(entry)
        return len(data) < entry.size or expected is None or matches(expected, data)

    def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`."""
        return self.origin.entries(prefix)

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        return await self.origin.children(prefix)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        return await self.origin.stat(name)

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        await self.origin.write(name, body, mode)

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        await self.origin.delete(names)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._client.close()
        await self.origin.close()


def _path(digest: str, name: str) -> str:
    """The path of a file, or of a bundle."""
    is_bundle = name.startswith(BUNDLE)
    return bundle_path(digest, name.removeprefix(BUNDLE)) if is_bundle else file_path(digest, name)
