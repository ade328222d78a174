"""A rank's part in checkpoints that several ranks write together."""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, Fenced, FerryError, Superseded
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.pipeline.durability import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.checkpoint.upload.uploader import UploadResult
from podferry.sidecar.state.journal import Journal, PublishedPart

log = structlog.get_logger(__name__)


class GangPublisher:
    """Offers this rank's parts, and finds out which of them have become whole checkpoints."""

    def __init__(
        self,
        gang: GangCoordinator,
        journal: Journal,
        book: VersionRegistry,
        progress: DurabilityTracker,
        retention: Retention | None,
    ) -> None:
        self._gang, self._journal, self._book, self._progress = gang, journal, book, progress
        self._retention = retention
        self._lock = asyncio.Lock()

    async def offer(self, pinned: HeldCheckpoint, shipment: UploadResult) -> None:
        """Tell the other ranks what was sent.

        Raises:
            FerryError: The store's; it is not known whether they were told.
        """
        candidate = pinned.candidate
        changed_at = candidate.changed_ns / 1e9
        part = PublishedPart(
            candidate.files, pinned.completed_at, changed_at, shipment.folder, shipment.files
        )
        async with self._lock:
            await self._submit(candidate.name, part)
            self._journal.checkpoints.published[candidate.name] = part
            self._journal.save()

    async def _submit(self, name: str, part: PublishedPart) -> None:
        await self._gang.publish(name, part.folder, part.sent, part.changed_at)

    async def run(self, every: float) -> None:
        """Look for whole checkpoints until cancelled.

        Args:
            every: Seconds between two looks.
        """
        known = False
        while True:
            try:
                known = known or await self._offer_again()
                await self._look()
            except Fenced as error:
                for name in self._journal.checkpoints.published:
                    self._progress.failed(name, error)
                self._progress.tell()
                return
            except FerryError as error:
                log.warning("the other ranks' parts cannot be looked at", reason=str(error))
            await asyncio.sleep(every)

    async def _offer_again(self) -> bool:
        """Tell the gang what an earlier worker has offered; done once."""
        # Meanwhile the trainer may have written another version: it must stay the last one.
        async with self._lock:
            for name, part in list(self._journal.checkpoints.published.items()):
                try:
                    await self._submit(name, part)
                except Changed as error:
                    log.warning("what was sent has been removed: it is looked at again", reason=str(error))
                    self._book.forget(Candidate(name, part.files))
                    del self._journal.checkpoints.published[name]
        return True

    async def _look(self) -> None:
        commits, awaited = await self._gang.commit_complete()
        for commit in commits:
            self._joined(commit)
            if self._retention is not None:
                await self._retention.after_commit(commit)
        self._give_up()
        self._progress.awaited = awaited
        self._progress.tell()

    def _joined(self, commit: Commit) -> None:
        part = self._journal.checkpoints.published.get(commit.name)
        held = {(file.name, file.size, file.xxh128) for file in commit.files}
        # Another version may have been offered since.
        if part is not None and held.issuperset((file.name, file.size, file.xxh128) for file in part.sent):
            del self._journal.checkpoints.published[commit.name]
            self._book.committed(Candidate(commit.name, part.files), commit, part.completed_at)

    def _give_up(self) -> None:
        """Let parts go where a newer checkpoint is committed; of one that is lost without it, say so."""
        offered = self._journal.checkpoints.published
        for name in [name for name in offered if self._gang.is_abandoned(name)]:
            lost = self._gang.failure(name)
            if lost is not None:
                self._progress.failed(name, Superseded(lost))
                continue
            self._progress.failures.pop(name, None)
            del offered[name]
            self._journal.save()
