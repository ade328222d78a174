"""From the checkpoint directory to the destination: detects, links and queues versions, and has them sent.

Three tasks share the queue. One scans and links, so that what is complete is held before the trainer replaces
it. The upload worker sends and commits. For several ranks, the gang publisher waits for all parts. A fourth
task removes old commits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from podferry.contract.checkpoint_writer import not_the_writer
from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Changed, Problem, Refused
from podferry.contract.http_api import Durability, Marked
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.directory_scan import scan_directory
from podferry.sidecar.checkpoint.gang.join_rules import no_step_problem
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion
from podferry.sidecar.checkpoint.pipeline.confirmer import ConfirmationWriter
from podferry.sidecar.checkpoint.pipeline.content_recheck import ContentRecheck
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.detector_record import DetectorRecord
from podferry.sidecar.checkpoint.pipeline.durability_tracker import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.gang_publisher import GangPublisher
from podferry.sidecar.checkpoint.pipeline.last_completed import last_completed
from podferry.sidecar.checkpoint.pipeline.older_candidates import older_than
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.checkpoint.pipeline.rival_report import RivalReport
from podferry.sidecar.checkpoint.pipeline.suspect_files import SuspectFiles
from podferry.sidecar.checkpoint.pipeline.unusable_content import exclude
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.upload_worker import UploadWorker
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.pipeline.volume_pressure import VolumePressure
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.monotonic_clock import MonotonicClock
from podferry.sidecar.state.agent_state import AgentState

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 5.0
"""How long the end of a training waits for the removal of old commits; the next agent does the rest."""


class CheckpointPipeline:
    """The checkpoints of one agent."""

    def __init__(
        self,
        dependencies: Dependencies,
        state: AgentState,
        status: CheckpointStatus,
        settings: CheckpointSettings,
        keep_local: int = 1,
        now: Callable[[], float] = time.time,
        *,
        read_only: bool = False,
    ) -> None:
        self._dependencies, self._detector, self._settings = dependencies, dependencies.detector, settings
        self._status, self._read_only, self._succeeded = status, read_only, False
        self._given_up: dict[str, Candidate] = {}
        journal, held = dependencies.journal, dependencies.holds.adopt()
        self._now = MonotonicClock(now, last_completed(journal.checkpoints, held))
        self._detector_record = DetectorRecord(self._detector, journal)
        self._detector.watch_from(dependencies.holds.now_ns())
        committer, gang = dependencies.committer, dependencies.gang
        rank = committer.identity.rank if committer.identity.world > 1 else None
        self._registry = VersionRegistry(
            journal, status, held, dependencies.durations, self._on_durable, self._now, rank
        )
        newest_first, pace = journal.agent.newest_first, settings.set_apart_seconds
        self._queue = UploadQueue(self._registry, newest_first=newest_first, set_apart_seconds=pace)
        self._tracker = DurabilityTracker(
            state, status, self._detector, self._registry, self._queue, dependencies.counters, self._now
        )
        self._tracker.read_only = read_only
        self._retention = dependencies.retention
        self._publisher = (
            GangPublisher(gang, self._registry, self._tracker, self._retention) if gang is not None else None
        )
        self._confirmer = ConfirmationWriter(
            self._registry, committer.store, rank, self._tracker.report, settings.retry_seconds
        )
        self._recheck = self._new_recheck()
        parts = self._queue, self._registry, self._tracker, self._publisher, self._recheck
        self._worker = UploadWorker(dependencies, *parts, settings.retry_seconds)
        self._rivals = RivalReport(committer, self._tracker, self._queue, settings.rival_seconds)
        self._volume = VolumePressure(self._detector, settings, keep_local)

    def _new_recheck(self) -> ContentRecheck:
        detector = self._detector
        suspects = SuspectFiles(detector.root, detector.open_files, self._settings.rescan_seconds)
        record, registry = self._detector_record, self._registry
        return ContentRecheck(suspects, detector, record, registry, self._queue, self._tracker)

    def mark_restored(self, found: Restored) -> None:
        """Record the restored files as they are now, which need no upload, and what the restore found."""
        present = scan_checkpoints(self._detector.root)[1]
        exclude(self._dependencies, self._registry, found)
        self._registry.pass_over(found.passed_over, found.passed_over_count, found.leftovers)
        self._registry.restore(present.values(), found.fingerprints, found.status)
        for name in self._registry.durable().keys() & present.keys() if found.fingerprints else ():
            self._recheck.suspects.trust(present[name])

    def ignore_older_than(self, newest: Commit) -> None:
        """Ignore what was in the directory before this agent and is older than the newest commit.

        Its own commit may have been removed since (`keep-remote`, `gc`); a new one would follow newer ones.
        """
        present, settled = scan_checkpoints(self._detector.root)[1], self._registry.settled()
        older = [one for one in older_than(newest, present.values()) if one.name not in settled]
        for candidate in older:
            log.info("ignored: older than the newest commit", name=candidate.name)
        self._registry.ignore(older)

    def begin(self) -> None:
        """Training has not started: what is in the directory is not from this run.

        What is left out is not lost by it, and change times show no rename by its trainer.
        """
        self._detector_record.begin(self._dependencies.holds.now_ns())
        self._tracker.left_out.ignore(scan_directory(self._detector.root).left_out)

    async def mark(self, checkpoint: str) -> Marked:
        """The trainer says that a checkpoint is complete as it is now."""
        return await self._recheck.marks.mark(checkpoint)

    async def flush(
        self, seconds: float, *, final: bool = False, ending: bool = False, succeeded: bool = False
    ) -> Durability:
        """Wait at most `seconds` until all that is in the directory now is durable.

        `final`: nothing is written any more; `succeeded`: what wrote it ended successfully. `ending`: the pod
        is ending, the newest goes first from now on.
        """
        self._tracker.final |= final
        self._succeeded = self._succeeded or succeeded
        self._recheck.ask()
        if final:
            self._recheck.look_at_the_end(seconds)
        if ending and not self._queue.newest_first:
            journal = self._dependencies.journal
            self._queue.newest_first = journal.agent.newest_first = True
            journal.save()
            self._worker.let_newest_overtake()
        if final or ending:
            self._queue.retry_set_apart()
        try:
            answer = await self._tracker.flush(seconds)
        finally:
            # The good end of a block says nothing about what the rest of the program writes.
            self._succeeded = self._succeeded and self._tracker.final
        if final and answer.durable and not self._queue.newest_first and self._retention is not None:
            await self._retention.settle(SETTLE_SECONDS)
        return answer

    async def run(self) -> None:
        """Detect and upload until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._scan_repeatedly())
            group.create_task(self._worker.run())
            group.create_task(self._recheck.run())
            group.create_task(self._confirmer.run())
            if self._publisher is not None:
                group.create_task(self._publisher.run(self._settings.join_poll_seconds))
            elif not self._read_only:
                group.create_task(self._rivals.run())
            if self._retention is not None:
                group.create_task(self._retention.run())

    async def _scan_repeatedly(self) -> None:
        closed: set[str] = set()
        while True:
            scan, unpinned = self._tracker.requested_scan, self._registry.unpinned()
            settled, final = self._registry.settled(), self._tracker.final
            found = await self._detector.scan(settled, closed, final=final, succeeded=self._succeeded)
            self._detector_record.save_places()
            detected = self._registry.detect(found, unpinned)
            self._registry.settle(self._detector.proven)
            for version in detected:
                await self._hold(version)
            self._confirmer.wake()
            await self._recheck.after_scan(closed, settled)
            self._tracker.finished_scan = scan
            self._registry.prune(self._detector.present)
            self._evict_if_needed()
            self._tracker.report()
            closed = await self._detector.wait_for_change()

    def _on_durable(self) -> None:
        self._confirmer.wake()
        self._evict_if_needed()

    def _evict_if_needed(self) -> None:
        if self._read_only:
            self._tracker.volume_problem = self._volume.evict_given_up([*self._given_up.values()])
            return
        durable, commits = self._registry.durable(), self._registry.commits()
        safe = {name: one for name, one in durable.items() if name not in self._tracker.rereading}
        self._tracker.volume_problem = self._volume.evict_if_needed(safe, commits)

    async def _hold(self, version: CheckpointVersion) -> None:
        """Link and queue a version; if it changes meanwhile, the next scan decides what it is."""
        candidate = version.candidate
        problem = self._not_accepted(candidate)
        if problem is not None:
            self._reject(version, problem)
            return
        try:
            texts = self._detector.pointer_texts(candidate)
            self._detector_record.link(candidate.files)
            hold = self._dependencies.holds.link(candidate, self._detector.root, self._now(), texts)
        except Changed as error:
            log.info("a checkpoint changed while it was linked: scanning again", reason=str(error))
            self._detector.wake()
            return
        except Refused as error:
            log.warning("a checkpoint cannot be held", reason=str(error))
            self._reject(version, error.problems[0])
            return
        self._recheck.suspects.link(candidate)
        for older in self._queue.add(version, hold):
            log.info("a queued checkpoint was replaced by a newer version", name=version.name)
            await self._worker.release(older)
        self._status.write_seconds = self._detector.write_seconds(candidate)
        self._worker.let_newest_overtake()

    def _not_accepted(self, candidate: Candidate) -> Problem | None:
        """Why a checkpoint is not uploaded at all, or None."""
        if self._read_only:
            return self._give_up(candidate)
        return no_step_problem(candidate.name) if self._publisher is not None else None

    def _give_up(self, candidate: Candidate) -> Problem:
        name = candidate.name
        problem = not_the_writer(name, self._dependencies.committer.identity.rank)
        if self._given_up.pop(name, None) is None:
            log.warning("a checkpoint is not uploaded", name=name, reason=str(problem))
        self._given_up[name] = candidate
        return problem

    def _reject(self, version: CheckpointVersion, problem: Problem) -> None:
        self._detector.not_ready[version.name] = problem
        self._registry.reject(version)
