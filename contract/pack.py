"""The index of a pack: many small files in few tar archives, as `podferry dataset pack` writes them.

A pack is a directory of archives, its shards, with the index at its root. The index is written last: where it
is, the pack is whole. It says where in which shard each file lies and what its sum is, so that a reader needs
neither the archives' own headers nor their order, and may fetch a part alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from podferry.contract.errors import Changed, Corrupt, Problem
from podferry.contract.file_names import clashes, name_problem
from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.contract.versioned_json import decode_document

FORMAT = 1
INDEX = "podferry-pack.json"
"""The object at a dataset's root that makes it a pack."""
UNFINISHED_DIR = ".podferry-pack"
"""The directory at a pack's root that holds what a later run needs to go on; gone once the index is there."""


class PackedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file of a pack.

    Attributes:
        name: Relative to the root of the dataset that was packed.
        offset: Where its content begins in the shard, bytes.
        size: Bytes.
        xxh128: XXH3-128 of the content, 32 hexadecimal digits.
    """

    name: str
    offset: int
    size: int
    xxh128: str


class PackShard(msgspec.Struct, frozen=True):
    """One archive of a pack.

    Attributes:
        name: Relative to the pack's root.
        bytes: Its size.
        xxh128: XXH3-128 of the whole archive.
        members: What it holds, in order of their offsets.
    """

    name: str
    bytes: int
    xxh128: str
    members: tuple[PackedFile, ...]


class PackIndex(msgspec.Struct, frozen=True):
    """All of a pack.

    Attributes:
        source: The digest of the dataset that was packed, as its manifest has it.
        shards: The archives, in order.
        format: Version of this document.
    """

    source: str
    shards: tuple[PackShard, ...]
    format: int = FORMAT

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files as a dataset lists them, sorted; the tag is the content's sum."""
        return tuple(
            sorted(Entry(file.name, file.size, file.xxh128) for one in self.shards for file in one.members)
        )


def encode_index(index: PackIndex) -> bytes:
    """The index as JSON, one line."""
    return msgspec.json.encode(index)


def decode_index(data: bytes, source: str) -> PackIndex:
    """Read an index and check that what it says can be true.

    Args:
        data: The document.
        source: Where it came from, for messages.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No index; names that cannot be files below one directory, or come twice; members that
            overlap or lie outside of their shard, all at once.
    """
    index = decode_document(data, PackIndex, FORMAT, source)
    Corrupt.raise_any([*_misnamed(index), *(found for one in index.shards for found in _misplaced(one))])
    return index


def check_shards(index: PackIndex, listed: Sequence[Entry], where: str) -> None:
    """Compare an index with what lies beside it.

    Args:
        index: What the pack should hold.
        listed: What was listed at its root.
        where: The pack, for messages.

    Raises:
        Changed: A shard is missing or has another size, all of them at once.
    """
    sizes = {entry.name: entry.size for entry in listed}
    remedy = "Pack the dataset again, into another place"
    Changed.raise_any(
        Problem(f"the pack {where} lacks what its index lists", _measured(shard, sizes), remedy)
        for shard in index.shards
        if sizes.get(shard.name) != shard.bytes
    )


def is_pack(listed: Sequence[Entry], unpack: Unpack) -> bool:
    """Whether what was listed at a dataset's root is a pack that is to be unpacked."""
    return unpack is not Unpack.NEVER and any(entry.name == INDEX for entry in listed)


def other_objects(index: PackIndex, listed: Sequence[Entry]) -> list[Entry]:
    """The objects at a pack's root that are no part of it: files of their own."""
    own = {INDEX, *(shard.name for shard in index.shards)}
    return [one for one in listed if one.name not in own and not one.name.startswith(UNFINISHED_DIR + "/")]


def _measured(shard: PackShard, sizes: dict[str, int]) -> str:
    found = f"{sizes[shard.name]:,} bytes" if shard.name in sizes else "not there"
    return f"{shard.name}: {found}; {shard.bytes:,} bytes are listed"


def _misnamed(index: PackIndex) -> Iterator[Problem]:
    for names in (
        [shard.name for shard in index.shards],
        [file.name for shard in index.shards for file in shard.members],
    ):
        names.sort()
        yield from filter(None, map(name_problem, names))
        yield from clashes(names)
        twice = sorted({name for name, following in pairwise(names) if name == following})
        for name in twice:
            yield Problem("a pack lists a name twice", repr(name), "Pack the dataset again")


def _misplaced(shard: PackShard) -> Iterator[Problem]:
    """Members must follow each other within the shard, so that no byte is counted twice."""
    end = 0
    for file in shard.members:
        if file.size < 0 or file.offset < end or file.offset + file.size > shard.bytes:
            measured = f"{file.size} bytes from {file.offset}; {shard.bytes} bytes, {end} of them before it"
            what = f"{ascii(file.name)[:200]} does not lie within the shard {ascii(shard.name)[:200]}"
            yield Problem(what, measured, "Pack the dataset again")
        end = max(end, file.offset + file.size)
