"""Keeps only the newest commits of a lineage, while uploads continue: a slow removal delays no checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector

log = structlog.get_logger(__name__)

PORTION = 200
"""Commits that are removed at a time: their files are held in memory."""


class Retention:
    """Removes old commits of the agent's own lineage. Failures are only logged: they cost no durability.

    One removal runs at a time. It may be cut off at any moment, like a killed one: all commits stay intact.

    Args:
        reader: The lineage's.
        keep: How many complete commits of each kind to keep, from 1. The newest sure one is kept, too.
        protect: Names or folders of checkpoints to keep, too, such as the one that training resumed from.
        is_foreign: Whether a commit is of another training run: it is neither removed nor counted.
    """

    def __init__(
        self,
        reader: CommitReader,
        keep: int,
        protect: Collection[str] = (),
        is_foreign: Callable[[Commit], bool] = lambda commit: False,
    ) -> None:
        self._collector = GarbageCollector(reader, is_foreign)
        self._keep, self._protect, self._finished = keep, protect, False
        self._due, self._settled = asyncio.Event(), asyncio.Event()
        self._settled.set()

    def request(self, commit: Commit) -> None:
        """Remove soon what is too old now that `commit` exists. Several requests may become one removal."""
        self._collector.add(commit)
        self._due.set()
        self._settled.clear()

    async def run(self) -> None:
        """Remove what is requested, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            await self.remove()
            if not self._due.is_set():
                self._settled.set()

    async def settle(self, seconds: float) -> None:
        """Wait until nothing is requested, at most so long."""
        try:
            await asyncio.wait_for(self._settled.wait(), seconds)
        except TimeoutError:
            log.info("old checkpoints are removed by the next agent: the store takes long")

    async def remove(self) -> None:
        """Remove all that is too old now."""
        try:
            while await self._remove_portion() == PORTION:
                pass
            if not self._finished:
                await self._collector.finish()
                self._finished = True
        except FerryError as error:
            log.warning("old checkpoints were not removed at the destination", reason=str(error))

    async def _remove_portion(self) -> int:
        removed = await self._collector.remove(self._keep, self._protect, PORTION)
        if removed.commits:
            names = [commit.name for commit in removed.commits]
            log.info("old checkpoints removed at the destination", names=names, bytes=removed.bytes)
        return len(removed.commits)
