"""A pack on its way into the stage: its members are the dataset's files, cut out of ranges of its shards.

Since the index says where each file lies, nothing is unpacked: a start that follows a kill, a selection and a
pod's part fetch what they lack and no more, and every file is compared with its sum before it gets its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

import msgspec
import xxhash

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.contract.pack import PackedFile, PackIndex, PackShard
from podferry.sidecar.fetch.range_reader import FetchContext, RangeReader
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.runtime.concurrency import gather_all
from podferry.sidecar.runtime.file_digest import digest_of
from podferry.sidecar.staging.file_ops import write_refused

WASTE = 1 << 18
"""Bytes between two files that are fetched with them, rather than by another request: what a connection of
100 MB/s carries in 3 ms."""
SLICE = 32
"""Files that are written before others have their turn: a few milliseconds."""
MINE = "packed-"
"""What the names of large files aside begin with."""


class MemberSpan(msgspec.Struct, frozen=True, gc=False):
    """One request.

    Attributes:
        shard: Name of the shard.
        start, length: The range of it, bytes.
        members: The files in it; of one that is longer than a range, that alone.
        whole: Whether it holds all of them, or a part of the one.
    """

    shard: str
    start: int
    length: int
    members: tuple[PackedFile, ...]
    whole: bool = True


def spans(index: PackIndex, wanted: Collection[str], range_bytes: int) -> Iterator[MemberSpan]:
    """The requests that bring the wanted files, shard by shard.

    Args:
        index: Where they lie.
        wanted: Names, as a set.
        range_bytes: Length of a request, at most.
    """
    for shard in index.shards:
        group: list[PackedFile] = []
        for file in shard.members:
            if file.name not in wanted:
                continue
            if file.size > range_bytes:
                yield from _pieces(shard, file, range_bytes)
                continue
            if group and not _joins(group, file, range_bytes):
                yield _span(shard, group)
                group = []
            group.append(file)
        if group:
            yield _span(shard, group)


def _joins(group: list[PackedFile], file: PackedFile, range_bytes: int) -> bool:
    last = group[-1]
    within = file.offset + file.size - group[0].offset <= range_bytes
    return within and file.offset - last.offset - last.size <= WASTE


def _span(shard: PackShard, group: list[PackedFile]) -> MemberSpan:
    start, last = group[0].offset, group[-1]
    return MemberSpan(shard.name, start, last.offset + last.size - start, tuple(group))


def _pieces(shard: PackShard, file: PackedFile, range_bytes: int) -> Iterator[MemberSpan]:
    for at in range(0, file.size, range_bytes):
        length = min(range_bytes, file.size - at)
        yield MemberSpan(shard.name, file.offset + at, length, (file,), whole=False)


class PackExtractor:
    """One run over a pack.

    Args:
        pack: Where the files lie.
        wanted: Those that are still to come.
        way: How its bytes get into the stage.
    """

    def __init__(self, pack: Pack, wanted: Collection[str], way: FetchContext) -> None:
        self._pack, self._stage, self._progress = pack, way.stage, way.progress
        self._ranges = RangeReader(way.store, way.settings)
        self._at_once = way.settings.in_flight
        self._spans = spans(pack.index, frozenset(wanted), way.settings.range_bytes)
        self._left: dict[str, int] = {}
        self._numbers = 1 << 40
        """Far above those of files that are fetched as they are."""

    async def run(self) -> None:
        """Fetch everything. A failure stops everything; no file that is not whole has its name.

        Raises:
            Corrupt: A file is not what the index says, after a second try; it is named.
            Changed, NotFound, TemporaryError: See `Store.read`.
            Refused: The volume was full, or a file could not be written.
        """
        try:
            await gather_all(self._work() for _ in range(self._at_once))
        finally:
            for path in self._stage.aside.glob(MINE + "*"):
                path.unlink()

    async def _work(self) -> None:
        for span in self._spans:
            data = await self._fetch(span)
            try:
                await (self._cut(span, data) if span.whole else self._grow(span, data))
            except OSError as error:
                name = f"files of the shard {span.shard}"
                raise write_refused(self._stage.root, name, error) from error
            finally:
                self._ranges.give(span.length)

    async def _fetch(self, span: MemberSpan) -> memoryview:
        """A range, once more where a file in it does not add up: the bytes may have suffered on the way."""
        entry = self._pack.listed[span.shard]
        data = await self._ranges.fetch(entry, span.start, span.length)
        if not span.whole or not list(_damaged(span, data)):
            return data
        self._ranges.give(span.length)
        data = await self._ranges.fetch(entry, span.start, span.length)
        for name in _damaged(span, data):
            self._ranges.give(span.length)
            raise _corrupt(name, span.shard)
        return data

    async def _cut(self, span: MemberSpan, data: memoryview) -> None:
        for count, file in enumerate(span.members):
            at = file.offset - span.start
            self._numbers += 1
            self._stage.put(self._numbers, data[at : at + file.size], Entry(file.name, file.size))
            self._progress(1, file.size)
            if count % SLICE == SLICE - 1:
                await asyncio.sleep(0)

    async def _grow(self, span: MemberSpan, data: memoryview) -> None:
        """Write a part of a large file; it is summed as a whole once it is there."""
        (file,) = span.members
        path = self._stage.aside / f"{MINE}{xxhash.xxh3_64_hexdigest(file.name.encode())}"
        if file.name not in self._left:
            self._left[file.name] = file.size
            self._stage.grow(path.name)
        await asyncio.to_thread(self._stage.write, path, data, span.start - file.offset)
        self._progress(0, span.length)
        self._left[file.name] -= span.length
        if self._left[file.name]:
            return
        with path.open("rb", buffering=0) as written:
            if await asyncio.to_thread(digest_of, written) != file.xxh128:
                raise _corrupt(file.name, span.shard)
        self._stage.admit(path, Entry(file.name, file.size))
        self._progress(1, 0)


def _damaged(span: MemberSpan, data: memoryview) -> Iterator[str]:
    """The files of a range that are not what the index says."""
    for file in span.members:
        at = file.offset - span.start
        if xxhash.xxh3_128_hexdigest(data[at : at + file.size]) != file.xxh128:
            yield file.name


def _corrupt(name: str, shard: str) -> Corrupt:
    remedy = "Run podferry dataset verify on the pack; if it finds this too, pack the dataset again"
    return Corrupt.of(f"{name} is not what the pack's index says", f"XXH3-128 differs, in {shard}", remedy)
