"""Which file goes to which shard at which byte, known before any file is read. Pure.

A shard is a plain tar archive, which any tar can unpack. The same files give the same bytes: sorted by name,
times and owners zero, modes 0644.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator

import msgspec

from podferry.contract.manifest import Entry

BLOCK_BYTES = tarfile.BLOCKSIZE
TAR_END = bytes(2 * BLOCK_BYTES)
"""Two zero blocks end an archive. Source: POSIX.1-2017, pax, "ustar Interchange Format"."""
MAX_PLAIN_NAME, PLAIN_SIZE_LIMIT = 100, 8 << 30
"""Characters and bytes: a longer name, or a file of this size, does not fit into a plain header."""


class ShardPlan(msgspec.Struct, frozen=True):
    """One shard.

    Attributes:
        name: The archive's.
        entries: Its members.
        offsets: Of each member's content.
        bytes: Its size.
    """

    name: str
    entries: tuple[Entry, ...]
    offsets: tuple[int, ...]
    bytes: int

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """(offset, size) of each member."""
        return [(offset, entry.size) for offset, entry in zip(self.offsets, self.entries, strict=True)]


class ShardItem(msgspec.Struct, frozen=True, gc=False):
    """A member, or part of a large one.

    Attributes:
        entry: The file.
        start, length: Its range, bytes.
        header: Precedes it in the archive.
        padding: Zero bytes that follow it.
    """

    entry: Entry
    start: int
    length: int
    header: bytes
    padding: int

    @property
    def bytes(self) -> int:
        """Its size in the archive."""
        return len(self.header) + self.length + self.padding


def plan_shards(entries: Iterable[Entry], shard_bytes: int) -> list[ShardPlan]:
    """Divide files into shards of at most `shard_bytes`, by name; a file larger than a shard gets its own."""
    shards: list[ShardPlan] = []
    members: list[Entry] = []
    offsets: list[int] = []
    end = 0
    for entry in sorted(entries):
        length = _header_length(entry) + _padded(entry.size)
        if members and end + length + len(TAR_END) > shard_bytes:
            shards.append(_shard(len(shards), members, offsets, end))
            members, offsets, end = [], [], 0
        members.append(entry)
        offsets.append(end + _header_length(entry))
        end += length
    return [*shards, _shard(len(shards), members, offsets, end)]


def _shard(number: int, entries: list[Entry], offsets: list[int], end: int) -> ShardPlan:
    return ShardPlan(f"shard-{number:05}.tar", tuple(entries), tuple(offsets), end + len(TAR_END))


def batches(shard: ShardPlan, batch_bytes: int) -> Iterator[list[ShardItem]]:
    """A shard's content before `TAR_END`, in batches of at most `batch_bytes`, each fetched in parallel."""
    batch: list[ShardItem] = []
    size = 0
    for entry in shard.entries:
        for item in _items(entry, batch_bytes):
            if batch and size + item.length > batch_bytes:
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += item.length
    if batch:
        yield batch


def _items(entry: Entry, max_bytes: int) -> Iterator[ShardItem]:
    padding = _padded(entry.size) - entry.size
    starts = range(0, entry.size, max_bytes) or (0,)
    for start in starts:
        length = min(max_bytes, entry.size - start)
        last = start + length == entry.size
        yield ShardItem(entry, start, length, b"" if start else header(entry), padding if last else 0)


def header(entry: Entry) -> bytes:
    """A file's tar header, as `tarfile` writes it; most are made from one template."""
    name = entry.name.encode()
    if not _is_plain(entry):
        info = tarfile.TarInfo(entry.name)
        info.size = entry.size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
    size = b"%011o\0" % entry.size
    checksum = b"%06o\0" % (TEMPLATE_SUM + sum(name) + sum(size))
    fields = (name.ljust(100, b"\0"), TEMPLATE[100:124], size, TEMPLATE[136:148], checksum, TEMPLATE[155:])
    return b"".join(fields)


def _is_plain(entry: Entry) -> bool:
    return entry.name.isascii() and len(entry.name) <= MAX_PLAIN_NAME and entry.size < PLAIN_SIZE_LIMIT


TEMPLATE = tarfile.TarInfo("").tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
TEMPLATE_SUM = sum(TEMPLATE[100:124]) + sum(TEMPLATE[136:148]) + sum(TEMPLATE[156:]) + 8 * ord(" ")
"""A header's checksum counts its own eight bytes as spaces. Source: POSIX.1-2017, as above."""


def _header_length(entry: Entry) -> int:
    return BLOCK_BYTES if _is_plain(entry) else len(header(entry))


def _padded(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES
