"""Packs a dataset: many small files into a few archives, with an index that is written last.

Run the same command again to resume an interrupted run: a note per shard says what it contains, and complete
shards are kept. Only these notes are ever deleted, after the index is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from podferry.contract.errors import Changed, Refused
from podferry.contract.manifest import Entry, Manifest, first_names
from podferry.contract.pack import (
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
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.byte_stream import ByteStream
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.sidecar.fetch.source import Progress
from podferry.sidecar.fetch.stream_feeder import feed
from podferry.sidecar.pack.notes import STARTED, PackStarted, ShardDone, read_note, shard_note
from podferry.sidecar.pack.shard_hasher import ShardHasher
from podferry.sidecar.pack.shard_layout import TAR_END, ShardItem, ShardPlan, batches, plan_shards
from podferry.sidecar.runtime.concurrency import for_each_limited, gather_all
from podferry.sidecar.runtime.retry import retry
from podferry.storage.listing.dataset import Dataset
from podferry.storage.store import Store

SHARD_BYTES = 256 << 20
"""Few requests for a lot of data, and still some shards for each of many pods."""
BATCH_BYTES = 4 << 20
"""Of files fetched together: thousands of small ones, or half a range of a large one."""
PREFETCH_DEPTH = 4
CONCURRENT_SHARDS = 2


class PackResult(msgspec.Struct, frozen=True):
    """The index of the pack, and how many of its shards an earlier run wrote."""

    index: PackIndex
    kept: int


class PackBuilder:
    """Builds one pack.

    Args:
        source: The listed dataset.
        target: Where the pack is written.
        shard_bytes: Maximum size of an archive.
        settings: Requests in parallel, and bytes in flight.
        progress: Called with (files, bytes) of each shard.
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
        self._started = PackStarted(source.manifest.digest, shard_bytes)
        self._ranges = RangeReader(source.store, self._settings)
        self._requests = asyncio.Semaphore(self._settings.in_flight)
        self._progress = progress
        self._done: dict[str, PackShard] = {}

    async def run(self) -> PackResult:
        """Write the missing parts of the pack.

        Raises:
            Refused: The target contains other objects, or the source cannot be packed there.
            Changed, NotFound, Corrupt, TemporaryError and the stores' errors: See `Store`.
        """
        check_source(self._manifest, self._target)
        objects = {entry.name: entry async for entry in self._target.entries()}
        if INDEX in objects:
            return await self._check_finished(objects)
        plans = plan_shards(self._manifest.entries, self._started.shard_bytes)
        await self._start(objects, plans)
        await for_each_limited(plans, lambda plan: self._keep(plan, objects), self._settings.in_flight)
        kept = len(self._done)
        missing = [plan for plan in plans if plan.name not in self._done]
        await for_each_limited(missing, self._build, CONCURRENT_SHARDS)
        index = PackIndex(self._manifest.digest, tuple(self._done[plan.name] for plan in plans))
        await self._target.write(INDEX, encode_index(index))
        await self._target.delete([*(shard_note(plan.name) for plan in plans), STARTED])
        return PackResult(index, kept)

    async def _check_finished(self, objects: dict[str, Entry]) -> PackResult:
        where = f"{self._target.uri}/{INDEX}"
        index = decode_index(bytes(await self._target.read(INDEX)), where)
        if index.source != self._manifest.digest:
            what = f"{self._target.uri} contains the pack of another dataset, or of another version of it"
            measured = f"sha256={index.source}; {self._manifest.uri} has sha256={self._manifest.digest}"
            raise Refused.of(what, measured, "Choose another place, or empty it")
        check_shards(index, list(objects.values()), str(self._target.uri))
        await self._target.delete(name for name in objects if name.startswith(UNFINISHED_DIR + "/"))
        return PackResult(index, len(index.shards))

    async def _start(self, objects: dict[str, Entry], plans: Sequence[ShardPlan]) -> None:
        """Write a note of what is being packed, before anything else."""
        own: set[str] = set()
        if STARTED in objects:
            own = {STARTED, *(name for plan in plans for name in (plan.name, shard_note(plan.name)))}
        others = sorted(objects.keys() - own)
        started = await read_note(self._target, STARTED, PackStarted, objects)
        if started is not None and started != self._started:
            what = f"{self._target.uri} contains an unfinished pack of another dataset, or with other shards"
            measured = f"sha256={started.source}, shards of {format_bytes(started.shard_bytes)}"
            remedy = "Run the command that started it again, empty it, or choose another place"
            raise Refused.of(what, measured, remedy)
        if others:
            measured = f"{len(others):,} object{'s' * (len(others) != 1)}: {first_names(others)}"
            raise Refused.of(f"{self._target.uri} contains other objects", measured, "Choose an empty place")
        if started is None:
            await self._target.write(STARTED, msgspec.json.encode(self._started))

    async def _keep(self, plan: ShardPlan, objects: dict[str, Entry]) -> None:
        """Keep a complete shard, if it matches the plan and is the object that was written."""
        done = await read_note(self._target, shard_note(plan.name), ShardDone, objects)
        if done is None:
            return
        planned = [(e.name, o, e.size) for e, o in zip(plan.entries, plan.offsets, strict=True)]
        found = [(file.name, file.offset, file.size) for file in done.shard.members]
        written = Entry(plan.name, plan.bytes, done.tag)
        if found == planned and objects.get(plan.name) == written and done.shard.bytes == plan.bytes:
            self._add(plan, done.shard)

    def _add(self, plan: ShardPlan, shard: PackShard) -> None:
        self._done[plan.name] = shard
        self._progress(len(plan.entries), sum(entry.size for entry in plan.entries))

    async def _build(self, plan: ShardPlan) -> None:
        hasher = await retry(self._settings.attempts, lambda: self._write(plan))
        members = zip(plan.entries, plan.offsets, hasher.member_digests, strict=True)
        files = tuple(PackedFile(entry.name, offset, entry.size, digest) for entry, offset, digest in members)
        written = await self._target.stat(plan.name)
        if written.size != plan.bytes:
            measured = f"{written.size:,} bytes, {plan.bytes:,} were written"
            raise Changed.of(f"{self._target.uri / plan.name} is not what was written", measured)
        shard = PackShard(plan.name, plan.bytes, hasher.hexdigest(), files)
        await self._target.write(shard_note(plan.name), msgspec.json.encode(ShardDone(shard, written.tag)))
        self._add(plan, shard)

    async def _write(self, plan: ShardPlan) -> ShardHasher:
        """Write one archive, whose batches are prefetched."""
        hasher, source = ShardHasher(plan.ranges), self._ranges.open_stream()
        writing = asyncio.ensure_future(self._target.write(plan.name, _body(source, hasher)))
        chunks = (self._fetch(batch) for batch in batches(plan, BATCH_BYTES))
        await feed(source, chunks, writing, PREFETCH_DEPTH)
        return hasher

    async def _fetch(self, batch: Sequence[ShardItem]) -> memoryview:
        """One batch as in the archive: header, content and padding of each item."""
        offsets = list(accumulate((item.bytes for item in batch), initial=0))
        size = offsets.pop()
        await self._ranges.acquire(size)
        content = memoryview(bytearray(size))
        try:
            await gather_all(self._fill(item, at, content) for item, at in zip(batch, offsets, strict=True))
        except BaseException:  # on cancellation too
            self._ranges.release(size)
            raise
        return content

    async def _fill(self, item: ShardItem, at: int, content: memoryview) -> None:
        async with self._requests:
            data = await self._ranges.fetch_acquired(item.entry, item.start, item.length)
        start = at + len(item.header)
        content[at:start] = item.header
        content[start : start + item.length] = data


def check_source(manifest: Manifest, target: Store) -> None:
    """Raise `Refused` if the dataset is a pack itself, or contains the target."""
    if any(entry.name == INDEX or entry.name.startswith(UNFINISHED_DIR + "/") for entry in manifest.entries):
        raise Refused.of(f"{manifest.uri} is a pack itself", INDEX, "Pack the dataset that it was made from")
    if str(target.uri).startswith(manifest.uri.rstrip("/") + "/") or str(target.uri) == manifest.uri:
        measured = f"{target.uri}, within {manifest.uri}"
        raise Refused.of("the pack would become a part of its dataset", measured, "Choose another place")


def _body(source: ByteStream, hasher: ShardHasher) -> Iterator[bytes]:
    """An archive in chunks, hashed on the way; runs in a thread of the store."""
    yield from hasher.read(source)
    hasher.update(TAR_END)
    yield TAR_END
