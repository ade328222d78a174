"""Opens a pack: reads its index and compares it with the listed objects."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import NotFound, Refused
from podferry.contract.manifest import Entry, Manifest, freeze
from podferry.contract.pack import INDEX, PackIndex, check_shards, decode_index, other_objects
from podferry.contract.quantity import format_bytes
from podferry.storage.store import Store

MAX_INDEX_BYTES = 1 << 29
"""Some seven million files, which Python keeps as objects."""


class Pack(msgspec.Struct, frozen=True):
    """A packed dataset.

    Attributes:
        index: Its content.
        listed: The objects at its root, by name.
        manifest: Its files: those in shards, and objects next to the shards. The digest is the listing's.
    """

    index: PackIndex
    listed: dict[str, Entry]
    manifest: Manifest

    @property
    def names(self) -> frozenset[str]:
        """The files in shards."""
        return frozenset(file.name for shard in self.index.shards for file in shard.members)


async def open_pack(store: Store, listed: Manifest) -> Pack:
    """The pack in a listing.

    Raises:
        NotFound: It is not a pack.
        Changed: Its shards are not those of its index.
        Corrupt, FormatTooNew, Refused: Its index cannot be used, or names objects next to the shards.
    """
    entry = next((entry for entry in listed.entries if entry.name == INDEX), None)
    if entry is None:
        what = f"{listed.uri} is not a pack, or is unfinished"
        raise NotFound.of(what, f"it has no {INDEX}", "Pack it with podferry dataset pack")
    if entry.size > MAX_INDEX_BYTES:
        measured = f"{format_bytes(entry.size)}; at most {format_bytes(MAX_INDEX_BYTES)} are read"
        raise Refused.of(f"the index of the pack {listed.uri} is too long", measured, "Pack it in parts")
    where = f"{listed.uri}/{INDEX}"
    index = decode_index(bytes(await store.read(INDEX, 0, entry.size, entry.tag)), where)
    check_shards(index, listed.entries, listed.uri)
    files = freeze(listed.uri, (*index.entries, *other_objects(index, listed.entries)))
    manifest = msgspec.structs.replace(files, digest=listed.digest)
    return Pack(index, {entry.name: entry for entry in listed.entries}, manifest)
