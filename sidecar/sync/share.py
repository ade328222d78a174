"""Divides a sync among several processes, such as the pods of an Indexed Job. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import msgspec

from podferry.contract.spec import Shard
from podferry.sidecar.sync.plan import SyncPlan


def in_share(names: Iterable[str], share: Shard | None) -> set[str]:
    """The names that belong to a share; all of them without one.

    By the name alone: processes agree even if the source changes between their listings, and a process that
    is started again has the same files.
    """
    every = set(names)
    if share is None:
        return every
    return {name for name in every if zlib.crc32(name.encode()) % share.count == share.rank}


def take_share(plan: SyncPlan, share: Shard | None) -> SyncPlan:
    """The plan of one process: it moves its own files, and leaves the others to theirs."""
    if share is None:
        return plan
    every = {move.entry.name for move in plan.moves}
    own = in_share(every, share)
    moves = tuple(move for move in plan.moves if move.entry.name in own)
    return msgspec.structs.replace(plan, moves=moves, others=frozenset(every - own))


def is_leader(share: Shard | None) -> bool:
    """Whether this process removes files, and merges the records: one of them does."""
    return share is None or share.rank == 0
