"""A dataset that is packed: what its index says, compared with what lies beside it."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import NotFound, Refused
from podferry.contract.manifest import Entry, Manifest, freeze
from podferry.contract.pack import INDEX, PackIndex, check_shards, decode_index, other_objects
from podferry.contract.quantity import format_bytes
from podferry.storage.store import Store

MAX_INDEX_BYTES = 1 << 29
"""Bytes of an index that is read: some seven million files, which Python holds as objects."""


class Pack(msgspec.Struct, frozen=True):
    """A dataset that is packed.

    Attributes:
        index: What it holds.
        listed: What was listed at its root, by name.
        manifest: The files that it stands for, those beside the shards included. The digest is the listing's.
    """

    index: PackIndex
    listed: dict[str, Entry]
    manifest: Manifest

    @property
    def names(self) -> frozenset[str]:
        """The files that come out of shards."""
        return frozenset(file.name for shard in self.index.shards for file in shard.members)


async def open_pack(store: Store, listed: Manifest) -> Pack:
    """The pack that a listing is.

    Raises:
        NotFound: It is none.
        Changed: Its shards are not those of its index.
        Corrupt, FormatTooNew, Refused: Its index cannot be used, or names what lies beside the shards.
    """
    entry = next((entry for entry in listed.entries if entry.name == INDEX), None)
    if entry is None:
        what = f"{listed.uri} is no pack, or an unfinished one"
        raise NotFound.of(what, f"it has no {INDEX}", "Pack it with podferry dataset pack")
    if entry.size > MAX_INDEX_BYTES:
        measured = f"{format_bytes(entry.size)}; {format_bytes(MAX_INDEX_BYTES)} are read at most"
        raise Refused.of(f"the index of the pack {listed.uri} is too long", measured, "Pack it in parts")
    where = f"{listed.uri}/{INDEX}"
    index = decode_index(bytes(await store.read(INDEX, 0, entry.size, entry.tag)), where)
    check_shards(index, listed.entries, listed.uri)
    held = freeze(listed.uri, (*index.entries, *other_objects(index, listed.entries)))
    manifest = msgspec.structs.replace(held, digest=listed.digest)
    return Pack(index, {entry.name: entry for entry in listed.entries}, manifest)
