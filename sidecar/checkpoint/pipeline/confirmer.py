"""Writes confirmations: commits that were doubtful when they were made, and are proven complete since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from podferry.contract.destination.confidence import Confirmer
from podferry.contract.errors import FerryError
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry

log = structlog.get_logger(__name__)

REASON = "a later save of the same kind, a mark, or the successful end of training proves it"


class ConfirmationWriter:
    """Confirms at the destination what the registry knows to be proven; `rank` is None if one pod writes all.

    `on_change` is called after each confirmation; a failed one is repeated after `retry_seconds`.
    """

    def __init__(
        self,
        registry: VersionRegistry,
        store: LineageStore,
        rank: int | None,
        on_change: Callable[[], None],
        retry_seconds: float,
    ) -> None:
        self._registry, self._store, self._rank = registry, store, rank
        self._on_change, self._retry_seconds = on_change, retry_seconds
        self._filled = asyncio.Event()

    def wake(self) -> None:
        """There may be something to confirm."""
        self._filled.set()

    async def run(self) -> None:
        """Confirm until cancelled."""
        while True:
            try:
                await self._confirm_all()
            except FerryError as error:
                log.warning("a checkpoint is not confirmed yet", reason=str(error))
                await asyncio.sleep(self._retry_seconds)
                continue
            await self._filled.wait()
            self._filled.clear()

    async def _confirm_all(self) -> None:
        for commit in self._registry.confirming():
            await confirm(self._store, commit, Confirmer.AGENT, REASON, self._rank)
            self._registry.confirm(commit)
            self._on_change()
