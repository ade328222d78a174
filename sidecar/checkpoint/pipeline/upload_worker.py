"""Makes held versions durable one by one: sends each, then commits it or publishes it to the other ranks.

They are sent in the order in which they were completed, since a commit's sequence is its age. A pod that is
ending sends its newest first and reserves lower sequences for the older ones. So does every pod for a version
that was refused for good: it is set apart, the next ones continue, and it is tried again from time to time.
"""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Changed, Fenced, FerryError, PermanentError, Superseded
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion, VersionState
from podferry.sidecar.checkpoint.pipeline.content_recheck import ContentRecheck
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
        recheck: ContentRecheck,
        retry_seconds: float,
    ) -> None:
        self._dependencies, self._publisher = dependencies, publisher
        self._queue, self._registry, self._tracker = queue, registry, tracker
        self._recheck, self._retry_seconds = recheck, retry_seconds
        self._task: asyncio.Task[VersionState | None] | None = None

    async def run(self) -> None:
        """Send until cancelled, or until another agent has taken over."""
        await self._dependencies.uploader.sweep(version.hold for version in self._queue.versions())
        while True:
            version = await self._queue.take()
            self._task = asyncio.create_task(self._upload(version))
            back_to = await self._watch(self._task)
            self._task = None
            self._queue.done(back_to)
            self._tracker.report()
            if isinstance(version.failure, Fenced):
                return  # every other one would be read for nothing
            if back_to is VersionState.HELD and version.failure is not None:
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

    async def _watch(self, task: asyncio.Task[VersionState | None]) -> VersionState | None:
        """Wait for an upload; returns where its version goes back to, None if it is finished."""
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=REPORT_SECONDS)
                self._tracker.report()
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return VersionState.HELD if task.cancelled() else task.result()

    async def _upload(self, version: CheckpointVersion) -> VersionState | None:
        """Make a version durable; returns the state in which it waits for its next try, None if for none."""
        marks = self._recheck.marks
        marked = marks.count(version.name)
        try:
            result = await self._dependencies.uploader.send(version.hold)
            marks.check(version.candidate, result.files)
            self._registry.move(version, VersionState.SENT)
            await self._deliver(version, result)
        except (Changed, Superseded) as error:
            log.info("abandoned", name=version.name, reason=str(error))
            changed = isinstance(error, Changed)
            if changed:
                marks.void(version.candidate, marked)
            self._registry.move(version, VersionState.CHANGED if changed else VersionState.SUPERSEDED)
            await self.release(version)
            self._dependencies.detector.wake()
        except FerryError as error:
            back_to = _state_after(version, error)
            self._tracker.record_failure(version, error)
            return back_to
        return None

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
                retention.request(commit)
        await self._dependencies.uploader.forget(version.hold)
        self._recheck.release(version)

    async def _commit(self, version: CheckpointVersion, result: UploadResult) -> Commit:
        """Commit in the order of ages: older versions may still wait, newer ones may have gone first."""
        return await self._dependencies.committer.commit(
            version.name,
            result.folder,
            result.files,
            place=self._registry.begin_commit(version),
            doubts=version.candidate.doubts,
            check=lambda: self._dependencies.uploader.recheck(result),
        )


def _state_after(version: CheckpointVersion, error: FerryError) -> VersionState:
    """Where a version that failed waits: in its place, or set apart if a retry cannot help.

    A fenced agent commits nothing at all, so no other version would be better off.
    """
    name, reason = version.name, str(error)
    if isinstance(error, Fenced):
        return VersionState.HELD
    is_news = version.failure is None or str(version.failure) != reason  # it may be tried for weeks
    if not isinstance(error, PermanentError):
        if is_news:
            log.warning("a checkpoint is not durable yet", name=name, reason=reason)
        return VersionState.HELD
    if is_news:
        log.warning("set apart: refused for good, the next checkpoints continue", name=name, reason=reason)
    return VersionState.SET_APART
