"""How files become shards: which goes where, byte by byte, known before any of them is read. Pure.

A shard is a plain tar archive: whoever has no podferry can unpack it. The same files give the same bytes:
they are sorted by name, times and owners are zero, and modes are 0644.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import xxhash

from podferry.contract.manifest import Entry

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
"""Two blocks of zeros end an archive. Source: POSIX.1-2017, pax, "ustar Interchange Format"."""
SHORT_NAME, SMALL = 100, 8 << 30
"""A name and a size that fit into a plain header."""


class ShardPlan(msgspec.Struct, frozen=True):
    """One shard.

    Attributes:
        name: Of the archive.
        entries: Its members.
        offsets: Where the content of each begins.
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
    """A member, or a part of one that is long.

    Attributes:
        entry: The file.
        start, length: The range of it, bytes.
        head: What stands before it in the archive.
        padding: Zero bytes that follow it.
    """

    entry: Entry
    start: int
    length: int
    head: bytes
    padding: int

    @property
    def bytes(self) -> int:
        """What it takes in the archive."""
        return len(self.head) + self.length + self.padding


def layout(entries: Iterable[Entry], shard_bytes: int) -> list[ShardPlan]:
    """Divide files into shards, in order of their names. One that is longer than a shard has one of its own.

    Args:
        entries: The files of a manifest.
        shard_bytes: Size of an archive, at most.
    """
    shards: list[ShardPlan] = []
    held: list[Entry] = []
    offsets: list[int] = []
    end = 0
    for entry in sorted(entries):
        length = _head_length(entry) + _padded(entry.size)
        if held and end + length + len(END) > shard_bytes:
            shards.append(_shard(len(shards), held, offsets, end))
            held, offsets, end = [], [], 0
        held.append(entry)
        offsets.append(end + _head_length(entry))
        end += length
    return [*shards, _shard(len(shards), held, offsets, end)]


def _shard(number: int, entries: list[Entry], offsets: list[int], end: int) -> ShardPlan:
    return ShardPlan(f"shard-{number:05}.tar", tuple(entries), tuple(offsets), end + len(END))


def batches(shard: ShardPlan, batch_bytes: int) -> Iterator[list[ShardItem]]:
    """The content of a shard in order, divided so that each part can be fetched at once.

    Args:
        shard: What to write; `END` comes after all of it.
        batch_bytes: Of content in one part, at most.
    """
    held: list[ShardItem] = []
    size = 0
    for entry in shard.entries:
        for item in _items(entry, batch_bytes):
            if held and size + item.length > batch_bytes:
                yield held
                held, size = [], 0
            held.append(item)
            size += item.length
    if held:
        yield held


def _items(entry: Entry, longest: int) -> Iterator[ShardItem]:
    padding = _padded(entry.size) - entry.size
    starts = range(0, entry.size, longest) or (0,)
    for start in starts:
        length = min(longest, entry.size - start)
        last = start + length == entry.size
        yield ShardItem(entry, start, length, b"" if start else header(entry), padding if last else 0)


def header(entry: Entry) -> bytes:
    """What stands before a file in a tar archive, as `tarfile` writes it; most are made from one template."""
    name = entry.name.encode()
    if not _is_plain(entry):
        info = tarfile.TarInfo(entry.name)
        info.size = entry.size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
    size = b"%011o\0" % entry.size
    total = PLAIN + sum(name) + sum(size)
    return b"".join(
        (
            name.ljust(100, b"\0"),
            TEMPLATE[100:124],
            size,
            TEMPLATE[136:148],
            b"%06o\0" % total,
            TEMPLATE[155:],
        )
    )


def _is_plain(entry: Entry) -> bool:
    return entry.name.isascii() and len(entry.name) <= SHORT_NAME and entry.size < SMALL


TEMPLATE = tarfile.TarInfo("").tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
PLAIN = sum(TEMPLATE[100:124]) + sum(TEMPLATE[136:148]) + sum(TEMPLATE[156:]) + 8 * ord(" ")
"""The checksum of a header counts its own eight bytes as spaces. Source: POSIX.1-2017, as above."""


def _head_length(entry: Entry) -> int:
    return BLOCK if _is_plain(entry) else len(header(entry))


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


class Sums:
    """XXH3-128 of an archive and of each of its members, from its bytes in order.

    Args:
        ranges: (offset, size) of each member, in order.

    Attributes:
        members: Of those whose end has come, 32 hexadecimal digits each.
        at: How many bytes have come.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.members: list[str] = []
        self.at = 0
        self._ranges = ranges
        self._whole, self._one = xxhash.xxh3_128(), xxhash.xxh3_128()

    def update(self, data: bytes | memoryview) -> None:
        """The next bytes."""
        start, self.at = self.at, self.at + len(data)
        self._whole.update(data)
        view = memoryview(data)
        while len(self.members) < len(self._ranges):
            offset, size = self._ranges[len(self.members)]
            if offset > self.at:
                return
            self._one.update(view[max(offset - start, 0) : max(offset + size - start, 0)])
            if offset + size > self.at:
                return
            self.members.append(self._one.hexdigest())
            self._one = xxhash.xxh3_128()

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        return self._whole.hexdigest()
