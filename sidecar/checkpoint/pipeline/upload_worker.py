"""Makes held versions durable one by one: sends each, then commits it or publishes it to the other ranks.

They are sent in the order in which they were completed, since a commit's sequence is its age. A pod that is
ending sends its newest first and reserves lower sequences for the older ones.
"""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Changed, FerryError, Superseded
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.durability_tracker import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.gang_publisher import GangPublisher
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.uploader import UploadResult

log = structlog.get_logger(__name__)

REPORT_SECONDS = 1.0
"""Interval between status reports of a running upload."""


class UploadWorker:
    """Empties the queue; retries a failed version after `retry_seconds`.

    `publisher` is None if one pod writes all of a checkpoint.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        queue: UploadQueue,
        registry: VersionRegistry,
        tracker: DurabilityTracker,
        publisher: GangPublisher | None,
        retry_seconds: float,
    ) -> None:
        self._dependencies, self._publisher = dependencies, publisher
        self._queue, self._registry, self._tracker = queue, registry, tracker
        self._retry_seconds = retry_seconds
        self._task: asyncio.Task[bool] | None = None

    async def run(self) -> None:
        """Send until cancelled."""
        await self._dependencies.uploader.sweep(version.hold for version in self._queue.versions())
        while True:
            version = await self._queue.take()
            self._task = asyncio.create_task(self._upload(version))
            retry = await self._watch(self._task)
            self._task = None
            if retry:
                self._registry.move(version, VersionState.HELD)
            self._queue.done()
            self._tracker.report()
            if retry and version.failure is not None:
                await asyncio.sleep(self._retry_seconds)

    def let_newest_overtake(self) -> None:
        """Stop sending an older version, so that the newest goes first; its sent parts stay sent.

        A commit is not stopped: it is quick, and whether it happened would be unknown.
        """
        if self._task is not None and self._queue.is_overtaken():
            self._task.cancel()

    async def release(self, version: CheckpointVersion) -> None:
        """Remove a version's links and its upload journal."""
        await self._dependencies.uploader.forget(version.hold)
        version.hold.release()

    async def _watch(self, task: asyncio.Task[bool]) -> bool:
        """Wait for an upload; returns whether it must be retried, as an overtaken one must."""
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=REPORT_SECONDS)
                self._tracker.report()
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return task.cancelled() or task.result()

    async def _upload(self, version: CheckpointVersion) -> bool:
        """Make a version durable; returns whether it must be retried."""
        try:
            result = await self._dependencies.uploader.send(version.hold)
            self._registry.move(version, VersionState.SENT)
            await self._deliver(version, result)
        except (Changed, Superseded) as error:
            log.info("abandoned", name=version.name, reason=str(error))
            changed = isinstance(error, Changed)
            self._registry.move(version, VersionState.CHANGED if changed else VersionState.SUPERSEDED)
            await self.release(version)
            self._dependencies.detector.wake()
        except FerryError as error:
            log.warning("a checkpoint is not durable yet", name=version.name, reason=str(error))
            self._tracker.record_failure(version, error)
            return True
        return False

    async def _deliver(self, version: CheckpointVersion, result: UploadResult) -> None:
        """Commit what was sent, or publish it to the other ranks.

        Raises:
            FerryError: It is not committed, as far as is known.
        """
        if result.existing is not None:
            self._registry.commit(version, result.existing)
        elif self._publisher is not None:
            await self._publisher.publish(version, result)
        else:
            commit = await self._commit(version, result)
            self._registry.commit(version, commit)
            # A pod that is ending has no time for it while older versions wait.
            retention = self._dependencies.retention
            if retention is not None and not self._queue.count_older(version):
                await retention.after_commit(commit)
        await self.release(version)

    async def _commit(self, version: CheckpointVersion, result: UploadResult) -> Commit:
        """Commit above the older versions, which may still wait, and below newer ones that went first."""
        return await self._dependencies.committer.commit(
            version.name,
            result.folder,
            result.files,
            reserve=self._queue.count_older(version),
            below=self._registry.next_newer_sequence(version),
            check=lambda: self._dependencies.uploader.recheck(result),
        )
