"""A store whose files come from another holder; what that does not send as expected comes from the source."""

from __future__ import annotations

import msgspec

from podferry.contract.cache_api import HOLDER_HEADER, HeldDataset
from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.checksum.checksums import Checksum
from podferry.storage.holder.client import HolderClient
from podferry.storage.holder.store import HolderStore


class PeerStore(HolderStore):
    """As `HolderStore`, but another holder is asked once: it may hang, or send wrong bytes again."""

    header_lines = f"{HOLDER_HEADER}: 1\r\n"

    def _has(self, entry: Entry) -> bool:
        """Only what the other holder has said it has is taken: parts name the version of their file."""
        del entry
        return True

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`."""
        return await self.origin.read(name, start, length, tag, size)


def peer_source(
    source: FetchSource, client: HolderClient, digest: str, held: dict[Entry, int]
) -> FetchSource:
    """Where to fetch the files that another holder has.

    Args:
        source: Of the dataset. What it says of a file's checksum counts more than what the holder says.
        client: The holder's.
        digest: Of its manifest.
        held: The files that are taken whole, with their checksums. Parts are verified by who takes them.
    """
    manifest = Manifest(str(source.store.uri), digest, sum(entry.size for entry in held), tuple(held))
    store = PeerStore(source.store, client, HeldDataset(manifest, tuple(held.values())))

    def checksum_of(entry: Entry) -> Checksum | None:
        return source.checksum_of(entry) or store.checksum_of(entry)

    return msgspec.structs.replace(source, store=store, checksum_of=checksum_of, origin=source.store)
