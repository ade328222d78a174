"""Reads a pack again and compares every byte of it with its index."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice

from podferry.contract.errors import Problem
from podferry.contract.manifest import Entry
from podferry.contract.pack import PackShard
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.pack.shard_layout import Sums
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.store import Store

PREFETCH_DEPTH = 4
CONCURRENT_SHARDS = 2
MAX_NAMES_SHOWN = 3
"""Files of one shard that a problem names."""


async def pack_problems(pack: Pack, store: Store, settings: PrefetchSettings) -> list[Problem]:
    """What of a pack is not what its index says, shard by shard; empty where it is whole.

    Raises:
        Changed, NotFound, TemporaryError: See `Store.read`.
    """
    ranges = RangeReader(store, settings)
    found: dict[str, Problem] = {}

    async def look(shard: PackShard) -> None:
        sums = Sums([(file.offset, file.size) for file in shard.members])
        async with aclosing(_in_order(pack.listed[shard.name], ranges, settings.range_bytes)) as pieces:
            async for data in pieces:
                sums.update(data)
                ranges.give(len(data))
        problem = _damage(shard, sums)
        if problem is not None:
            found[shard.name] = problem

    await for_each_limited(pack.index.shards, look, CONCURRENT_SHARDS)
    return [found[name] for name in sorted(found)]


async def _in_order(entry: Entry, ranges: RangeReader, length: int) -> AsyncGenerator[memoryview, None]:
    def fetch(start: int) -> asyncio.Task[memoryview]:
        return asyncio.create_task(ranges.fetch(entry, start, min(length, entry.size - start)))

    starts = iter(range(0, entry.size, length))
    fetching = deque(map(fetch, islice(starts, PREFETCH_DEPTH)))
    try:
        while fetching:
            data = await fetching[0]
            fetching.popleft()
            fetching.extend(map(fetch, islice(starts, 1)))
            yield data
    finally:
        for task in fetching:
            task.cancel()
        await asyncio.gather(*fetching, return_exceptions=True)


def _damage(shard: PackShard, sums: Sums) -> Problem | None:
    if sums.hexdigest() == shard.xxh128:
        return None
    pairs = zip(shard.members, sums.members, strict=True)
    names = [file.name for file, digest in pairs if file.xxh128 != digest]
    shown = ", ".join(map(repr, names[:MAX_NAMES_SHOWN])) + (", …" if len(names) > MAX_NAMES_SHOWN else "")
    files = f"{len(names):,} of {len(shard.members):,} files differ: {shown}" if names else "no file differs"
    remedy = "Pack the dataset again, into another place"
    return Problem(f"the shard {shard.name} is not what the pack's index says", files, remedy)
