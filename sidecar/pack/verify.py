"""Reads a pack and compares every byte with its index."""

from __future__ import annotations

import asyncio

from podferry.contract.errors import Problem
from podferry.contract.manifest import first_names
from podferry.contract.pack import PackShard
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.sidecar.fetch.stream_feeder import feed
from podferry.sidecar.pack.reader import Pack
from podferry.sidecar.pack.shard_hasher import ShardHasher
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.store import Store

PREFETCH_DEPTH = 4
CONCURRENT_SHARDS = 2


async def verify_pack(pack: Pack, store: Store, settings: PrefetchSettings) -> list[Problem]:
    """The shards that do not match the index, if any. Raises as `RangeReader.fetch`."""
    ranges = RangeReader(store, settings)
    found: dict[str, Problem] = {}

    async def verify(shard: PackShard) -> None:
        """Read a shard once, in order, and compare."""
        entry, length = pack.listed[shard.name], settings.range_bytes
        starts = range(0, entry.size, length)
        chunks = (ranges.fetch(entry, start, min(length, entry.size - start)) for start in starts)
        hasher = ShardHasher([(file.offset, file.size) for file in shard.members])
        source = ranges.open_stream()

        def hash_all() -> None:
            for _ in hasher.read(source):
                pass

        await feed(source, chunks, asyncio.ensure_future(asyncio.to_thread(hash_all)), PREFETCH_DEPTH)
        problem = _shard_problem(shard, hasher)
        if problem is not None:
            found[shard.name] = problem

    await for_each_limited(pack.index.shards, verify, CONCURRENT_SHARDS)
    return [found[name] for name in sorted(found)]


def _shard_problem(shard: PackShard, hasher: ShardHasher) -> Problem | None:
    if hasher.hexdigest() == shard.xxh128:
        return None
    digests = zip(shard.members, hasher.member_digests, strict=True)
    names = [file.name for file, digest in digests if file.xxh128 != digest]
    measured = f"{len(names):,} of {len(shard.members):,} files differ: {first_names(names)}"
    remedy = "Pack the dataset again, into another place"
    return Problem(
        f"the shard {shard.name} does not match the pack's index",
        measured if names else "no file differs",
        remedy,
    )
