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
from podferry.sidecar.fetch.range_reader import Ranges
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.pack.shard_layout import Sums
from podferry.sidecar.runtime.concurrency import each
from podferry.storage.range_fetch import Lane

AHEAD = 4
SHARDS_AT_ONCE = 2
MOST_NAMED = 3
"""Files of one shard that a problem names."""


async def damages(pack: Pack, lane: Lane, settings: PrefetchSettings) -> list[Problem]:
    """What of a pack is not what its index says, shard by shard; empty where it is whole.

    Raises:
        Changed, NotFound, TemporaryError: See `Lane.fetch`.
    """
    ranges = Ranges(lane, settings)
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

    await each(pack.index.shards, look, SHARDS_AT_ONCE)
    return [found[name] for name in sorted(found)]


async def _in_order(entry: Entry, ranges: Ranges, length: int) -> AsyncGenerator[memoryview, None]:
    def fetch(start: int) -> asyncio.Task[memoryview]:
        return asyncio.create_task(ranges.fetch(entry, start, min(length, entry.size - start)))

    starts = iter(range(0, entry.size, length))
    fetching = deque(map(fetch, islice(starts, AHEAD)))
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
    shown = ", ".join(map(repr, names[:MOST_NAMED])) + (", …" if len(names) > MOST_NAMED else "")
    files = f"{len(names):,} of {len(shard.members):,} files differ: {shown}" if names else "no file differs"
    remedy = "Pack the dataset again, into another place"
    return Problem(f"the shard {shard.name} is not what the pack's index says", files, remedy)
