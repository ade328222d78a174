"""What is not durable yet, why, and who waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from podferry.contract.api import Durability
from podferry.contract.errors import Fenced, FerryError, PermanentError, Problem
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.journal import PublishedPart
from podferry.sidecar.state.upload_counters import UploadCounters


class DurabilityTracker:
    """Answers whether checkpoints are durable.

    Args:
        state: Whose status is brought up to date, and who waits.
        detector: Knows what lies in the directory.
        line: What is held.
        offered: Parts that wait for other ranks', by name.
        meter: What has been sent.
        now: The agent's clock, seconds since the epoch.

    Attributes:
        failures: The last error of each that could not be sent, by name.
        unheld: What is neither held nor known to be unfinished, and its bytes: found whole just now, or let
            go since it changed. The next look says what it is.
        room: That the volume is full or nearly so, None where it is not.
        awaited: Whom offered parts wait for.
        final: Nobody writes any more.
        asked, looked: How often an answer was asked for, and up to which of them the directory was looked at.
    """

    def __init__(
        self,
        state: AgentState,
        detector: Detector,
        line: UploadQueue,
        offered: Mapping[str, PublishedPart],
        meter: UploadCounters,
        now: Callable[[], float] = time.time,
    ) -> None:
        assert state.status.checkpoints is not None  # noqa: S101 - only made for a pod with checkpoints
        self._status: CheckpointStatus = state.status.checkpoints
        self._state, self._detector, self._line, self._offered = state, detector, line, offered
        self._meter, self._now = meter, now
        self.failures: dict[str, FerryError] = {}
        self.unheld: dict[str, int] = {}
        self.room: Problem | None = None
        self.awaited: list[Problem] = []
        self.final = False
        self.asked = self.looked = 0

    def tell(self) -> None:
        """Bring the status up to date and wake those who wait."""
        held = self._line.held()
        sizes = dict(self.unheld)
        sizes |= {name: self._detector.present[name].bytes for name in self._detector.not_ready}
        sizes |= {name: sum(seen.size for _, seen in one.files) for name, one in self._offered.items()}
        sizes |= {pinned.candidate.name: pinned.candidate.bytes for pinned in held}
        whole = [pinned.completed_at for pinned in held]
        whole += [one.completed_at for one in self._offered.values()]
        self._status.pending = sorted(sizes)
        self._status.pending_bytes = sum(sizes.values())
        self._status.pending_since = min(whole, default=None)
        self._status.uploaded_bytes = self._meter.sent
        self._status.referenced_bytes = self._meter.referenced
        self._status.upload_rate = self._meter.rate
        failed = [problem for name in sorted(sizes) for problem in self._failed(name)]
        # One that is merely being written has nothing measured: it needs no telling before the end.
        flawed = [one for one in self._detector.not_ready.values() if self.final or one.measured]
        room = [self.room] if self.room else []
        self._status.problems = [*failed, *flawed, *self.awaited, *room]
        self._state.notify()

    async def durable(self, seconds: float) -> Durability:
        """Wait until all that lies in the directory now is durable, at most `seconds`."""
        now, deadline = self._now(), time.monotonic() + seconds
        self.asked += 1
        mine = self.asked
        self._detector.wake()
        if not await self._state.wait_for(lambda: self.looked >= mine, seconds):
            # What lies there is unknown, so nothing can be said to be durable.
            unknown = Problem("the checkpoint directory has not been looked at yet", f"after {seconds:g} s")
            return Durability(durable=False, pending=tuple(self._status.pending), problems=(unknown,))
        targets = set(self._status.pending)
        left = max(deadline - time.monotonic(), 0.0)
        await self._state.wait_for(lambda: self._settled(targets, now), left)
        return self._durability(targets, now)

    def _open(self, targets: set[str], asked: float) -> set[str]:
        """Which targets are neither durable nor gone; a version that was whole after the call counts."""
        newer = {durable.name for durable in self._status.durable if durable.completed_at >= asked}
        return targets & set(self._status.pending) - newer

    def _settled(self, targets: set[str], asked: float) -> bool:
        left = self._open(targets, asked)
        return not left or self._hopeless(left)

    def _hopeless(self, names: set[str]) -> bool:
        flawed = set(self._detector.not_ready) if self.final else set()
        return bool(names) and names <= flawed | self._refused()

    def _refused(self) -> set[str]:
        """What is refused for good: the first in line with all that wait behind it, and offers."""
        line = [held.candidate.name for held in self._line.held()]
        refused = bool(line) and isinstance(self.failures.get(line[0]), PermanentError)
        offered = {name for name in self._offered if isinstance(self.failures.get(name), PermanentError)}
        return offered | (set(line) if refused else set())

    def _durability(self, targets: set[str], asked: float) -> Durability:
        left = self._open(targets, asked)
        problems: list[Problem] = [problem for name in sorted(left) for problem in self._problems(name)]
        last = self._status.durable[-1] if self._status.durable else None
        return Durability(
            durable=not left,
            pending=tuple(sorted(left)),
            problems=tuple(problems),
            hopeless=self._hopeless(left),
            last=last,
        )

    def _problems(self, name: str) -> Iterable[Problem]:
        waiting = self._detector.not_ready.get(name)
        if waiting is None and name in self._offered and name not in self.failures:
            return self.awaited
        return self._failed(name) or ((waiting,) if waiting else ())

    def failed(self, name: str, error: FerryError) -> None:
        """A checkpoint could not be sent or committed, this time."""
        self.failures[name] = error
        self._status.fenced |= isinstance(error, Fenced)

    def _failed(self, name: str) -> tuple[Problem, ...]:
        return self.failures[name].problems if name in self.failures else ()
