"""Extracts a pack's files from ranges of its shards into the staging directory.

Since the index gives the offset of every file, nothing is unpacked: a restart, a selection or a pod's shard
of the dataset fetches only what it lacks. Every file is compared with its digest before it gets its name.
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

MAX_GAP_BYTES = 1 << 18
"""Between two files in one request: a connection of 100 MB/s transfers them in 3 ms, faster than a second
request."""
FILES_PER_TURN = 32
"""Written before other tasks run: a few milliseconds."""
PARTIAL_PREFIX = "packed-"
"""Of large files' partial files."""


class MemberSpan(msgspec.Struct, frozen=True, gc=False):
    """One request.

    Attributes:
        shard: Name of the shard.
        start, length: Its range, bytes.
        members: The files in it; for a file larger than a range, only that file.
        complete: Whether it contains all of them, or part of that one file.
    """

    shard: str
    start: int
    length: int
    members: tuple[PackedFile, ...]
    complete: bool = True


def spans(index: PackIndex, wanted: Collection[str], range_bytes: int) -> Iterator[MemberSpan]:
    """The requests for the wanted files, shard by shard.

    Args:
        index: The pack's.
        wanted: Names, as a set.
        range_bytes: Maximum length of a request.
    """
    for shard in index.shards:
        group: list[PackedFile] = []
        for file in shard.members:
            if file.name not in wanted:
                continue
            if file.size > range_bytes:
                yield from _parts_of(shard, file, range_bytes)
                continue
            if group and not _fits(group, file, range_bytes):
                yield _span(shard, group)
                group = []
            group.append(file)
        if group:
            yield _span(shard, group)


def _fits(group: list[PackedFile], file: PackedFile, range_bytes: int) -> bool:
    last = group[-1]
    within = file.offset + file.size - group[0].offset <= range_bytes
    return within and file.offset - last.offset - last.size <= MAX_GAP_BYTES


def _span(shard: PackShard, group: list[PackedFile]) -> MemberSpan:
    start, last = group[0].offset, group[-1]
    return MemberSpan(shard.name, start, last.offset + last.size - start, tuple(group))


def _parts_of(shard: PackShard, file: PackedFile, range_bytes: int) -> Iterator[MemberSpan]:
    for at in range(0, file.size, range_bytes):
        length = min(range_bytes, file.size - at)
        yield MemberSpan(shard.name, file.offset + at, length, (file,), complete=False)


class PackExtractor:
    """Extracts the wanted files of one pack.

    Args:
        pack: The pack.
        wanted: Files not staged yet.
        context: How bytes are fetched.
    """

    def __init__(self, pack: Pack, wanted: Collection[str], context: FetchContext) -> None:
        self._pack, self._stage, self._progress = pack, context.stage, context.progress
        self._ranges = RangeReader(context.store, context.settings)
        self._concurrency = context.settings.in_flight
        self._spans = spans(pack.index, frozenset(wanted), context.settings.range_bytes)
        self._bytes_left: dict[str, int] = {}
        self._next_number = 1 << 40
        """Of partial files; far above those of files that are fetched as they are."""

    async def run(self) -> None:
        """Extract all wanted files. A failure stops all; only complete files get their names.

        Raises:
            Corrupt: A file, which is named, does not match the index after a second fetch.
            Changed, NotFound, TemporaryError: See `RangeReader.fetch`.
            Refused: The volume is full, or a file cannot be written.
        """
        try:
            await gather_all(self._work() for _ in range(self._concurrency))
        finally:
            self._stage.remove_partials(PARTIAL_PREFIX)

    async def _work(self) -> None:
        for span in self._spans:
            data = await self._fetch(span)
            try:
                await (self._write_files(span, data) if span.complete else self._write_part(span, data))
            except OSError as error:
                name = f"files of the shard {span.shard}"
                raise self._stage.write_error(name, error) from error
            finally:
                self._ranges.release(span.length)

    async def _fetch(self, span: MemberSpan) -> memoryview:
        """A range; fetched again if a digest differs, since the bytes may have been damaged in transit."""
        entry = self._pack.listed[span.shard]
        data = await self._ranges.fetch(entry, span.start, span.length)
        if not span.complete or not list(_damaged(span, data)):
            return data
        self._ranges.release(span.length)
        data = await self._ranges.fetch(entry, span.start, span.length)
        for name in _damaged(span, data):
            self._ranges.release(span.length)
            raise _corrupt(name, span.shard)
        return data

    async def _write_files(self, span: MemberSpan, data: memoryview) -> None:
        for count, file in enumerate(span.members):
            at = file.offset - span.start
            self._next_number += 1
            self._stage.write_small(self._next_number, data[at : at + file.size], Entry(file.name, file.size))
            self._progress(1, file.size)
            if count % FILES_PER_TURN == FILES_PER_TURN - 1:
                await asyncio.sleep(0)

    async def _write_part(self, span: MemberSpan, data: memoryview) -> None:
        """Write part of a large file, which is hashed once it is complete."""
        (file,) = span.members
        path = self._stage.partial_dir / f"{PARTIAL_PREFIX}{xxhash.xxh3_64_hexdigest(file.name.encode())}"
        if file.name not in self._bytes_left:
            self._bytes_left[file.name] = file.size
            self._stage.create_partial(path.name)
        await asyncio.to_thread(self._stage.write, path, data, span.start - file.offset)
        self._progress(0, span.length)
        self._bytes_left[file.name] -= span.length
        if self._bytes_left[file.name]:
            return
        with path.open("rb", buffering=0) as written:
            if await asyncio.to_thread(digest_of, written) != file.xxh128:
                raise _corrupt(file.name, span.shard)
        self._stage.publish(path, Entry(file.name, file.size))
        self._progress(1, 0)


def _damaged(span: MemberSpan, data: memoryview) -> Iterator[str]:
    """The files in a range whose digest differs from the index."""
    for file in span.members:
        at = file.offset - span.start
        if xxhash.xxh3_128_hexdigest(data[at : at + file.size]) != file.xxh128:
            yield file.name


def _corrupt(name: str, shard: str) -> Corrupt:
    remedy = "Run podferry dataset verify on the pack; if it finds this too, pack the dataset again"
    return Corrupt.of(f"{name} does not match the pack's index", f"XXH3-128 differs, in {shard}", remedy)
