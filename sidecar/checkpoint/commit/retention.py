"""Keeps the newest commits of a lineage."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector

log = structlog.get_logger(__name__)


class Retention:
    """Keeps the newest commits of an agent's lineage. A failure is logged: removal is not durability.

    Args:
        reader: Of the agent's own lineage.
        keep: How many whole commits stay, from 1.
        protect: Names or folders of checkpoints that stay besides, such as what training resumed from.
    """

    def __init__(self, reader: CommitReader, keep: int, protect: Collection[str] = ()) -> None:
        self._remover = GarbageCollector(reader)
        self._keep = keep
        self._protect = protect
        self._finished = False

    async def after_commit(self, commit: Commit) -> None:
        """Remove what has become too old now that there is `commit`."""
        self._remover.learn(commit)
        try:
            removal = await self._remover.remove(self._keep, self._protect)
            if not self._finished:
                await self._remover.finish()
                self._finished = True
        except FerryError as error:
            log.warning("old checkpoints were not removed at the destination", reason=str(error))
            return
        if removal.commits:
            names = [gone.name for gone in removal.commits]
            log.info("old checkpoints removed at the destination", names=names, bytes=removal.bytes)
