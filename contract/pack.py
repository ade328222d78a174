"""The index of a pack: many small files in a few tar archives, as `podferry dataset pack` writes them.

A pack is a directory of archives, its shards, with the index at its root. The index is written last: if it
exists, the pack is complete. It has the shard, offset and checksum of each file, so readers need neither
the archives' headers nor their order, and can fetch single files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from podferry.contract.errors import Changed, Corrupt, Problem
from podferry.contract.file_names import clashes, duplicates, name_problem, quoted
from podferry.contract.manifest import Entry
from podferry.contract.spec import Unpack
from podferry.contract.versioned_json import decode_document

FORMAT = 1
INDEX = "podferry-pack.json"
"""The object at a dataset's root that makes it a pack."""
UNFINISHED_DIR = ".podferry-pack"
"""The directory at a pack's root with what a later run needs to resume; deleted once the index exists."""


class PackedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file of a pack.

    Attributes:
        name: Relative to the root of the dataset that was packed.
        offset: Start of its content in the shard, bytes.
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
        xxh128: XXH3-128 of the archive.
        members: Its files, in order of their offsets.
    """

    name: str
    bytes: int
    xxh128: str
    members: tuple[PackedFile, ...]


class PackIndex(msgspec.Struct, frozen=True):
    """The index of a pack.

    Attributes:
        source: The manifest digest of the packed dataset.
        shards: The archives, in order.
        format: Version of this document.
    """

    source: str
    shards: tuple[PackShard, ...]
    format: int = FORMAT

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The files as dataset entries, sorted; the tag is the content's checksum."""
        files = (file for shard in self.shards for file in shard.members)
        return tuple(sorted(Entry(file.name, file.size, file.xxh128) for file in files))


def encode_index(index: PackIndex) -> bytes:
    """The index as one line of JSON."""
    return msgspec.json.encode(index)


def decode_index(data: bytes, source: str) -> PackIndex:
    """Read an index from `source` and check its consistency.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: Not an index; or all names that cannot be files below one directory or are listed twice, and
            all members that overlap or exceed their shard.
    """
    index = decode_document(data, PackIndex, FORMAT, source)
    Corrupt.raise_any([*_invalid_names(index), *chain.from_iterable(map(_invalid_spans, index.shards))])
    return index


def check_shards(index: PackIndex, listed: Sequence[Entry], where: str) -> None:
    """Compare an index with the listing of its pack's root; messages name the pack as `where`.

    Raises:
        Changed: All shards that are missing or have another size.
    """
    sizes = {entry.name: entry.size for entry in listed}
    remedy = "Pack the dataset again, to another destination"
    Changed.raise_any(
        Problem(f"the pack {where} does not match its index", _measured(shard, sizes), remedy)
        for shard in index.shards
        if sizes.get(shard.name) != shard.bytes
    )


def is_pack(listed: Sequence[Entry], unpack: Unpack) -> bool:
    """Whether the listing of a dataset's root is a pack that should be unpacked."""
    return unpack is not Unpack.NEVER and any(entry.name == INDEX for entry in listed)


def other_objects(index: PackIndex, listed: Sequence[Entry]) -> list[Entry]:
    """The objects at a pack's root that are not part of it: separate files."""
    own = {INDEX, *(shard.name for shard in index.shards)}
    return [one for one in listed if one.name not in own and not one.name.startswith(UNFINISHED_DIR + "/")]


def _measured(shard: PackShard, sizes: dict[str, int]) -> str:
    found = f"{sizes[shard.name]:,} bytes" if shard.name in sizes else "not found"
    return f"{shard.name}: {found}; the index lists {shard.bytes:,} bytes"


def _invalid_names(index: PackIndex) -> Iterator[Problem]:
    shards, files = index.shards, (file for shard in index.shards for file in shard.members)
    for names in (sorted(shard.name for shard in shards), sorted(file.name for file in files)):
        yield from filter(None, map(name_problem, names))
        yield from clashes(names)
        for name in duplicates(names):
            yield Problem("a pack lists a name twice", repr(name), "Pack the dataset again")


def _invalid_spans(shard: PackShard) -> Iterator[Problem]:
    """Members must be in order within the shard, so that no byte is counted twice."""
    end = 0
    for file in shard.members:
        if file.size < 0 or file.offset < end or file.offset + file.size > shard.bytes:
            measured = (
                f"{file.size} bytes from {file.offset}; the shard has {shard.bytes}, {end} of them before it"
            )
            what = f"{quoted(file.name)} is not within the shard {quoted(shard.name)}"
            yield Problem(what, measured, "Pack the dataset again")
        end = max(end, file.offset + file.size)
