"""Reports what is not durable yet and why, and answers those who wait for durability."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from podferry.contract.errors import Fenced, FerryError, PermanentError, Problem
from podferry.contract.http_api import Durability
from podferry.contract.status import CheckpointStatus, newest_durable
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion
from podferry.sidecar.checkpoint.pipeline.left_out_names import LeftOutNames
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.upload_counters import UploadCounters


class DurabilityTracker:
    """Derives what is pending from the registry, the queue and the detector.

    Attributes:
        left_out: What is not uploaded.
        volume_problem: The volume is full or nearly so; None if it is not.
        missing_parts: Which ranks' parts the published versions wait for.
        rereading: Bytes of durable checkpoints that may have new content and are read again, by name.
        final: Nothing is written any more.
        read_only: Nothing is uploaded: what is written here never becomes durable.
        requested_scan, finished_scan: Number of the newest scan that a caller waits for, and of the newest
            one that has covered the directory since it was requested.
    """

    def __init__(
        self,
        state: AgentState,
        status: CheckpointStatus,
        detector: Detector,
        registry: VersionRegistry,
        queue: UploadQueue,
        counters: UploadCounters,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state, self._status, self._detector = state, status, detector
        self._registry, self._queue, self._counters, self._now = registry, queue, counters, now
        self.left_out = LeftOutNames(detector, registry, status)
        self.volume_problem: Problem | None = None
        self.missing_parts: list[Problem] = []
        self.rereading: Mapping[str, int] = {}
        self.final = self.read_only = False
        self._fence: Fenced | None = None
        self.requested_scan = self.finished_scan = 0

    def report(self) -> None:
        """Update the status and wake the waiters."""
        set_apart = self._queue.set_apart()
        published, queued = self._registry.published(), [*set_apart, *self._queue.versions()]
        present, waiting = self._detector.present, self._detector.not_ready
        sizes = dict(self.rereading)
        sizes |= {version.name: version.candidate.bytes for version in self._registry.unpinned()}
        sizes |= {name: present[name].bytes for name in waiting}
        sizes |= {version.name: version.candidate.bytes for version in [*published, *queued]}
        sizes |= {commit.name: 0 for commit in self._registry.confirming() if commit.name not in sizes}
        status, counters = self._status, self._counters
        status.pending, status.pending_bytes = sorted(sizes), sum(sizes.values())
        status.set_apart = [version.name for version in set_apart]
        status.pending_since = min((one.completed_at for one in [*published, *queued]), default=None)
        status.uploaded_bytes, status.referenced_bytes = counters.sent, counters.referenced
        status.upload_rate = counters.rate
        failed = [problem for name in sorted(sizes) for problem in self._failure_problems(name)]
        # A checkpoint that is merely being written has nothing measured: it is no problem before the end.
        incomplete = [problem for problem in waiting.values() if self.final or problem.measured]
        volume = [self.volume_problem] if self.volume_problem else []
        self.left_out.report()
        status.open_files = self._detector.describe_questions()
        fence = self._fence.problems if self._fence is not None else ()
        status.problems = [*dict.fromkeys([*fence, *failed]), *incomplete, *self.missing_parts, *volume]
        self._state.notify()

    def record_failure(self, version: CheckpointVersion, error: FerryError) -> None:
        """A version could not be sent or committed, this time."""
        version.failure = error
        if isinstance(error, Fenced):
            self._fence, self._status.fenced = error, True

    def record_rival(self, text: str) -> None:
        """Which other agent runs in the lineage; empty for none."""
        self._status.rival = text
        self._state.notify()

    def record_fence(self, fence: Fenced) -> None:
        """Another agent has taken over: it shows at once, not with the next checkpoint."""
        self._fence = fence
        self._status.fenced = True
        self.report()

    async def flush(self, seconds: float) -> Durability:
        """Wait at most `seconds` until all that is in the directory now is durable."""
        started, deadline = self._now(), time.monotonic() + seconds
        self.requested_scan += 1
        scan = self.requested_scan
        self._detector.wake()
        if not await self._state.wait_for(lambda: self.finished_scan >= scan, seconds):
            # What is in the directory is unknown, so nothing can be called durable.
            what, measured = "the checkpoint directory is still being scanned", f"for {seconds:.1f} s"
            unknown = Problem(what, measured, "Wait longer")
            return Durability(durable=False, pending=tuple(self._status.pending), problems=(unknown,))
        targets = set(self._status.pending)
        left = max(deadline - time.monotonic(), 0.0)
        await self._state.wait_for(lambda: self._is_settled(targets, started), left)
        return self._durability(targets, started)

    def _open(self, targets: set[str], started: float) -> set[str]:
        """The targets that are still pending; a version that was completed after the call counts."""
        newer = {done.name for done in self._status.durable if done.completed_at >= started}
        return targets & set(self._status.pending) - newer

    def _is_settled(self, targets: set[str], started: float) -> bool:
        left = self._open(targets, started)
        return not left or self._is_hopeless(left)

    def _is_hopeless(self, names: set[str]) -> bool:
        incomplete = set(self._detector.not_ready) if self.final or self.read_only else set()
        return bool(names) and names <= incomplete | self._refused()

    def _refused(self) -> set[str]:
        """What failed for good: what is set apart until its next try, published parts; all if fenced."""
        published, queue = self._registry.published(), self._queue
        refused = {one.name for one in published if isinstance(one.failure, PermanentError)}
        refused |= {one.name for one in queue.set_apart() if not queue.is_due(one)}
        if self._status.fenced:
            refused.update(one.name for one in [*queue.set_apart(), *queue.versions()])
        return refused

    def _durability(self, targets: set[str], started: float) -> Durability:
        left, lost = self._open(targets, started), self.left_out.lost() if self.final else {}
        problems = [problem for name in sorted(left) for problem in self._problems(name)]
        return Durability(
            durable=not left and not lost,
            pending=tuple(sorted(left.union(lost))),
            problems=tuple(dict.fromkeys([*problems, *lost.values()])),
            hopeless=self._is_hopeless(left) or (bool(lost) and not left),
            last=newest_durable(self._status.durable),
        )

    def _problems(self, name: str) -> Iterable[Problem]:
        incomplete, failure = self._detector.not_ready.get(name), self._failure_problems(name)
        if incomplete is None and not failure and any(name == one.name for one in self._registry.published()):
            return self.missing_parts
        if name in self.rereading and incomplete is None and not failure:
            return (Problem(f"{name} is read again", "it may have changed since it was committed"),)
        return failure or ((incomplete,) if incomplete else ())

    def _failure_problems(self, name: str) -> tuple[Problem, ...]:
        failure = self._registry.failure(name) or self._fence
        return failure.problems if failure is not None else ()
