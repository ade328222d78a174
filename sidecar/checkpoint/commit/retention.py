"""Keeps only the newest commits of a lineage."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector

log = structlog.get_logger(__name__)


class Retention:
    """Removes old commits of the agent's own lineage. Failures are only logged: they cost no durability.

    Args:
        reader: The lineage's.
        keep: How many complete commits to keep, from 1.
        protect: Names or folders of checkpoints to keep, too, such as the one that training resumed from.
    """

    def __init__(self, reader: CommitReader, keep: int, protect: Collection[str] = ()) -> None:
        self._collector = GarbageCollector(reader)
        self._keep, self._protect, self._finished = keep, protect, False

    async def after_commit(self, commit: Commit) -> None:
        """Remove the commits that are too old now that `commit` exists."""
        self._collector.add(commit)
        try:
            removed = await self._collector.remove(self._keep, self._protect)
            if not self._finished:
                await self._collector.finish()
                self._finished = True
        except FerryError as error:
            log.warning("old checkpoints were not removed at the destination", reason=str(error))
            return
        if removed.commits:
            names = [commit.name for commit in removed.commits]
            log.info("old checkpoints removed at the destination", names=names, bytes=removed.bytes)
