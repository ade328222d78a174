"""Packs a dataset: many small files into few archives, with an index that is written last.

A run that was interrupted is repeated with the same command: a note beside each shard says what it holds, and
shards that stand whole are kept. Nothing is ever deleted but these notes, once the index is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from podferry.contract.errors import Changed, Corrupt, FormatTooNew, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.pack import (
    FORMAT,
    INDEX,
    UNFINISHED_DIR,
    PackedFile,
    PackIndex,
    PackShard,
    check_shards,
    decode_index,
    encode_index,
)
from podferry.contract.quantity import format_bytes
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES, ByteStream
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.sidecar.fetch.stream_feeder import feed
from podferry.sidecar.pack.shard_layout import END, ShardItem, ShardPlan, Sums, batches, layout
from podferry.sidecar.runtime.concurrency import for_each_limited, gather_all, retry
from podferry.storage.listing.dataset import Dataset
from podferry.storage.store import Store

SHARD_BYTES = 256 << 20
"""Few requests for much, and still some for each of many pods."""
BATCH = 4 << 20
"""Bytes of files that are fetched together: thousands of small ones, or half a range of a large one."""
PREFETCH_DEPTH = 4
CONCURRENT_SHARDS = 2
BEGUN = f"{UNFINISHED_DIR}/begun.json"

Doc = TypeVar("Doc")
Progress = Callable[[int, int], None]
"""Is told (files, bytes) that are packed."""


class PackStarted(msgspec.Struct, frozen=True):
    """What is being packed at a place.

    Attributes:
        source: The digest of the dataset.
        shard_bytes: Size of an archive, at most.
        format: Version of this document.
    """

    source: str
    shard_bytes: int
    format: int = FORMAT


class ShardDone(msgspec.Struct, frozen=True):
    """One shard that stands.

    Attributes:
        shard: As the index will have it.
        tag: Which version of the object it is.
        format: Version of this document.
    """

    shard: PackShard
    tag: str
    format: int = FORMAT


class PackResult(msgspec.Struct, frozen=True):
    """What a run has done.

    Attributes:
        index: The pack's.
        kept: How many shards stood already.
    """

    index: PackIndex
    kept: int


class PackBuilder:
    """One run.

    Args:
        source: The dataset, listed.
        target: Where the pack goes.
        shard_bytes: Size of an archive, at most.
        settings: Requests at once, and bytes in flight.
        progress: Is told of each shard.
    """

    def __init__(
        self,
        source: Dataset,
        target: Store,
        shard_bytes: int = SHARD_BYTES,
        settings: PrefetchSettings | None = None,
        progress: Progress = lambda files, count: None,
    ) -> None:
        self._settings = settings or PrefetchSettings()
        self._manifest = source.manifest
        self._target = target
        self._begun = PackStarted(source.manifest.digest, shard_bytes)
        self._ranges = RangeReader(source.store, self._settings)
        self._requests = asyncio.Semaphore(self._settings.in_flight)
        self._progress = progress
        self._done: dict[str, PackShard] = {}

    async def run(self) -> PackResult:
        """Write what is missing of the pack.

        Raises:
            Refused: The target holds something else, or the source is no dataset to pack.
            Changed, NotFound, Corrupt, TemporaryError and the stores' errors: See `Store`.
        """
        check_source(self._manifest, self._target)
        held = {entry.name: entry async for entry in self._target.entries()}
        if INDEX in held:
            return await self._finished(held)
        plans = layout(self._manifest.entries, self._begun.shard_bytes)
        await self._begin(held, plans)
        await for_each_limited(plans, lambda plan: self._keep(plan, held), self._settings.in_flight)
        kept = len(self._done)
        missing = [plan for plan in plans if plan.name not in self._done]
        await for_each_limited(missing, self._pack, CONCURRENT_SHARDS)
        index = PackIndex(self._manifest.digest, tuple(self._done[plan.name] for plan in plans))
        await self._target.write(INDEX, encode_index(index))
        await self._target.delete([*(_note(plan) for plan in plans), BEGUN])
        return PackResult(index, kept)

    async def _finished(self, held: dict[str, Entry]) -> PackResult:
        where = f"{self._target.uri}/{INDEX}"
        index = decode_index(bytes(await self._target.read(INDEX)), where)
        if index.source != self._manifest.digest:
            what = f"{self._target.uri} holds the pack of another dataset, or of another state of this one"
            measured = f"sha256={index.source}; {self._manifest.uri} has sha256={self._manifest.digest}"
            raise Refused.of(what, measured, "Choose another place, or empty it")
        check_shards(index, list(held.values()), str(self._target.uri))
        await self._target.delete(name for name in held if name.startswith(UNFINISHED_DIR + "/"))
        return PackResult(index, len(index.shards))

    async def _begin(self, held: dict[str, Entry], plans: Sequence[ShardPlan]) -> None:
        """Note what is being packed, before anything else is written."""
        own = {BEGUN, *(plan.name for plan in plans), *map(_note, plans)} if BEGUN in held else set()
        others = sorted(held.keys() - own)
        begun = await self._document(BEGUN, PackStarted, held)
        if begun not in {None, self._begun}:
            what = f"{self._target.uri} holds an unfinished pack of another dataset, or with other shards"
            measured = f"sha256={begun.source}, shards of {format_bytes(begun.shard_bytes)}" if begun else ""
            raise Refused.of(what, measured, "Repeat the command that began it, empty it, or choose another")
        if others:
            shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
            measured = f"{len(others):,} object{'s' * (len(others) != 1)}: {shown}"
            raise Refused.of(f"{self._target.uri} holds other things", measured, "Choose an empty place")
        if begun is None:
            await self._target.write(BEGUN, msgspec.json.encode(self._begun))

    async def _keep(self, plan: ShardPlan, held: dict[str, Entry]) -> None:
        """Take note of a shard that stands whole: it is what was planned, and what was written."""
        done = await self._document(_note(plan), ShardDone, held)
        if done is None:
            return
        planned = [(e.name, o, e.size) for e, o in zip(plan.entries, plan.offsets, strict=True)]
        found = [(file.name, file.offset, file.size) for file in done.shard.members]
        there = Entry(plan.name, plan.bytes, done.tag)
        if found == planned and held.get(plan.name) == there and done.shard.bytes == plan.bytes:
            self._done[plan.name] = done.shard
            self._progress(len(plan.entries), sum(entry.size for entry in plan.entries))

    async def _document(self, name: str, kind: type[Doc], held: dict[str, Entry]) -> Doc | None:
        """A note; one that cannot be read is none."""
        if name not in held:
            return None
        try:
            return decode_document(bytes(await self._target.read(name)), kind, FORMAT, name)
        except (Corrupt, FormatTooNew):
            return None

    async def _pack(self, plan: ShardPlan) -> None:
        sums = await retry(self._settings.attempts, lambda: self._write(plan))
        members = zip(plan.entries, plan.offsets, sums.members, strict=True)
        files = tuple(PackedFile(entry.name, offset, entry.size, digest) for entry, offset, digest in members)
        written = await self._target.stat(plan.name)
        if written.size != plan.bytes:
            measured = f"{written.size:,} bytes, {plan.bytes:,} were written"
            raise Changed.of(f"{self._target.uri / plan.name} is not what was written", measured)
        shard = PackShard(plan.name, plan.bytes, sums.hexdigest(), files)
        await self._target.write(_note(plan), msgspec.json.encode(ShardDone(shard, written.tag)))
        self._done[plan.name] = shard
        self._progress(len(files), sum(entry.size for entry in plan.entries))

    async def _write(self, plan: ShardPlan) -> Sums:
        """Write one archive, whose parts are fetched ahead."""
        loop = asyncio.get_running_loop()
        sums = Sums(plan.ranges)
        source = ByteStream(lambda count: loop.call_soon_threadsafe(self._ranges.give, count))
        writing = asyncio.ensure_future(self._target.write(plan.name, _body(source, sums)))
        await feed(source, (self._content(items) for items in batches(plan, BATCH)), writing, PREFETCH_DEPTH)
        return sums

    async def _content(self, items: Sequence[ShardItem]) -> memoryview:
        """A part of an archive: what stands before each file, the file, and zeros up to a whole block."""
        size = sum(item.bytes for item in items)
        await self._ranges.take(size)
        content = memoryview(bytearray(size))
        try:
            await gather_all(self._place(item, at, content) for item, at in _places(items))
        except BaseException:  # a cancellation too: the room is given back
            self._ranges.give(size)
            raise
        return content

    async def _place(self, item: ShardItem, at: int, content: memoryview) -> None:
        async with self._requests:
            data = await self._ranges.read(item.entry, item.start, item.length)
        start = at + len(item.head)
        content[at:start] = item.head
        content[start : start + item.length] = data


def check_source(manifest: Manifest, target: Store) -> None:
    """Whether a dataset can be packed there.

    Raises:
        Refused: It is a pack itself, or the pack would become a part of it.
    """
    if any(entry.name == INDEX or entry.name.startswith(UNFINISHED_DIR + "/") for entry in manifest.entries):
        raise Refused.of(f"{manifest.uri} is a pack itself", INDEX, "Pack the dataset that it was made of")
    if str(target.uri).startswith(manifest.uri.rstrip("/") + "/") or str(target.uri) == manifest.uri:
        measured = f"{target.uri}, within {manifest.uri}"
        raise Refused.of("the pack would become a part of its dataset", measured, "Choose another place")


def _note(plan: ShardPlan) -> str:
    return f"{UNFINISHED_DIR}/{plan.name}.json"


def _places(items: Sequence[ShardItem]) -> Iterator[tuple[ShardItem, int]]:
    at = 0
    for item in items:
        yield item, at
        at += item.bytes


def _body(source: ByteStream, sums: Sums) -> Iterator[bytes]:
    """An archive in chunks, summed on their way. In a thread of the store's."""
    while chunk := source.read(MAX_READ_BYTES):
        sums.update(chunk)
        yield chunk
    sums.update(END)
    yield END
