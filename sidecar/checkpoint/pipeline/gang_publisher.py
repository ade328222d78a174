"""Publishes this rank's parts of checkpoints that several ranks write, and records their commits."""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Changed, Fenced, FerryError, Superseded
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.durability_tracker import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.uploader import UploadResult
from podferry.sidecar.state.journal import PublishedPart

log = structlog.get_logger(__name__)


class GangPublisher:
    """One rank's published parts."""

    def __init__(
        self,
        gang: GangCoordinator,
        registry: VersionRegistry,
        tracker: DurabilityTracker,
        retention: Retention | None,
    ) -> None:
        self._gang, self._registry, self._tracker, self._retention = gang, registry, tracker, retention
        self._lock = asyncio.Lock()

    async def publish(self, version: CheckpointVersion, result: UploadResult) -> None:
        """Show the other ranks what was sent; after a `FerryError` it is unknown whether they see it."""
        files, changed_at = version.candidate.files, version.candidate.changed_ns / 1e9
        doubts = version.candidate.doubts
        part = PublishedPart(files, version.completed_at, changed_at, result.folder, result.files, doubts)
        async with self._lock:
            await self._submit(version.name, part)
            self._registry.publish(version, part)

    async def run(self, poll_seconds: float) -> None:
        """Look for complete checkpoints until cancelled."""
        republished = False
        while True:
            try:
                republished = republished or await self._republish()
                await self._commit_complete()
            except Fenced as error:
                for version in self._registry.published():
                    self._tracker.record_failure(version, error)
                self._tracker.report()
                return
            except FerryError as error:
                log.warning("the other ranks' parts cannot be read", reason=str(error))
            await asyncio.sleep(poll_seconds)

    async def _submit(self, name: str, part: PublishedPart) -> None:
        await self._gang.publish(name, part.folder, part.sent, part.changed_at, part.doubts)

    async def _republish(self) -> bool:
        """Publish again what an earlier worker has published; done once."""
        # Meanwhile the trainer may have written another version: it must stay the last one.
        async with self._lock:
            for version in self._registry.published():
                try:
                    await self._submit(version.name, version.part)
                except Changed as error:
                    log.warning("a published part has been removed: scanning again", reason=str(error))
                    self._registry.move(version, VersionState.CHANGED)
        return True

    async def _publish_proven(self) -> None:
        """Publish parts again that were doubtful and are proven complete since."""
        async with self._lock:
            for version in self._registry.published():
                proven = version.part.doubts and not version.candidate.doubts
                if proven and not self._gang.is_abandoned(version.name):
                    version.drop_doubts_of_part()
                    await self._submit(version.name, version.part)
                    self._registry.keep_parts()

    async def _commit_complete(self) -> None:
        await self._publish_proven()
        commits, self._tracker.missing_parts = await self._gang.commit_complete()
        for commit in commits:
            self._record_commit(commit)
            if self._retention is not None:
                self._retention.request(commit)
        self._give_up_superseded()
        self._tracker.report()

    def _record_commit(self, commit: Commit) -> None:
        committed = {(file.name, file.size, file.xxh128) for file in commit.files}
        for version in self._registry.published():
            # Another version of this name may have been published since.
            sent = {(file.name, file.size, file.xxh128) for file in version.part.sent}
            if version.name == commit.name and sent <= committed:
                self._registry.commit(version, commit)

    def _give_up_superseded(self) -> None:
        """Drop parts that a newer checkpoint has made needless; report one that is lost without them."""
        for version in self._registry.published():
            if self._gang.is_abandoned(version.name):
                lost = self._gang.failure(version.name)
                if lost is not None:
                    self._tracker.record_failure(version, Superseded(lost))
                else:
                    self._registry.move(version, VersionState.SUPERSEDED)
