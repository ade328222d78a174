"""From the checkpoint directory to the destination: looks, pins, and has what it holds made durable.

Tasks share one line. One looks and pins, so that what is whole is held before the trainer can replace it.
Another makes it durable (`delivery.py`). Where several ranks write a checkpoint together, a third finds out
when all of their parts are there (`offers.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import structlog

from podferry.contract.api import Durability, Marked
from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, Refused
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.gang.join_rules import no_step_problem
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.durability import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.gang_publisher import GangPublisher
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.upload_worker import UploadWorker
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.pipeline.volume_pressure import VolumePressure
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint, add_pointers
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.monotonic_clock import MonotonicClock
from podferry.sidecar.state.agent_state import AgentState

log = structlog.get_logger(__name__)


class CheckpointPipeline:
    """The checkpoints of one agent."""

    def __init__(
        self,
        gear: Dependencies,
        state: AgentState,
        settings: CheckpointSettings,
        keep_local: int = 1,
        now: Callable[[], float] = time.time,
    ) -> None:
        assert state.status.checkpoints is not None  # noqa: S101 - only made for a pod with checkpoints
        self._status: CheckpointStatus = state.status.checkpoints
        self._gear, self._detector, self._settings = gear, gear.detector, settings
        journal, held = gear.journal, gear.pins.adopt()
        # Versions are told apart by these times: a clock that was set back must not make an old one newer.
        times = [pinned.completed_at for pinned in held]
        times += [done.completed_at for done in journal.checkpoints.durable]
        times += [part.completed_at for part in journal.checkpoints.published.values()]
        self._now = now = MonotonicClock(now, max(times, default=0.0))
        gear.detector.marks.update(journal.checkpoints.marks)
        self._line = UploadQueue(held, newest_first=journal.agent.newest_first)
        self._book = VersionRegistry(journal, self._status, self._line, gear.timings, self._relieve, now)
        self._progress = DurabilityTracker(
            state, gear.detector, self._line, journal.checkpoints.published, gear.meter, now
        )
        self._room = VolumePressure(gear.detector, settings, keep_local)
        self._offers = (
            GangPublisher(gear.gang, journal, self._book, self._progress, gear.retention)
            if gear.gang is not None
            else None
        )
        self._delivery = UploadWorker(
            gear, self._line, self._book, self._progress, self._offers, settings.retry_seconds
        )

    def mark_restored(self, names: Iterable[str]) -> None:
        """Take what was restored as it lies there now: it needs no upload."""
        self._book.mark_restored(scan_checkpoints(self._detector.root)[1].values(), names)

    def leave_out_older(self, newest: Commit) -> None:
        """Let be what lay there before this agent and is older than the newest commit."""
        self._book.leave_out(scan_checkpoints(self._detector.root)[1].values(), newest)

    async def mark(self, checkpoint: str) -> Marked:
        """Take the trainer's word that a checkpoint is whole as it lies there."""
        answer = await self._detector.mark(checkpoint)
        self._gear.journal.checkpoints.marks = dict(self._detector.marks)
        self._gear.journal.save()
        return answer

    async def durable(self, seconds: float, *, final: bool = False, ending: bool = False) -> Durability:
        """Wait until all that lies in the directory now is durable, at most `seconds`.

        Args:
            seconds: The longest wait.
            final: Nobody writes any more.
            ending: The pod ends: the newest goes first from now on.
        """
        self._progress.final |= final
        if ending and not self._line.newest_first:
            self._line.newest_first = self._gear.journal.agent.newest_first = True
            self._gear.journal.save()
            self._delivery.overtake()
        return await self._progress.durable(seconds)

    async def run(self) -> None:
        """Look and upload until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._delivery.run())
            if self._offers is not None:
                group.create_task(self._offers.run(self._settings.join_poll_seconds))

    async def _watch(self) -> None:
        closed: set[str] = set()
        while True:
            asked, judged = self._progress.asked, set(self._progress.unheld)
            found = await self._detector.scan(self._book.handled, closed, final=self._progress.final)
            unheld = {name: size for name, size in self._progress.unheld.items() if name not in judged}
            self._progress.unheld = unheld | {candidate.name: candidate.bytes for candidate in found}
            for candidate in found:
                if await self._hold(candidate):
                    del self._progress.unheld[candidate.name]
            self._progress.looked = asked
            self._book.keep(self._detector.present)
            self._relieve()
            self._progress.tell()
            closed = await self._detector.wait_for_change()

    def _relieve(self) -> None:
        names = [done.name for done in self._status.durable]
        self._progress.room = self._room.relieve(self._book.durable(), names)

    async def _hold(self, candidate: Candidate) -> bool:
        """Pin and queue, an older version of the same name gives way; whether no other look is needed."""
        problem = no_step_problem(candidate.name) if self._offers is not None else None
        if problem is not None:
            self._detector.not_ready[candidate.name] = problem
            return True
        try:
            pinned = self._pin(candidate)
        except Changed as error:
            log.info("a checkpoint changed while it was pinned: looking again", reason=str(error))
            self._detector.wake()
            return False
        except Refused as error:
            log.warning("a checkpoint cannot be held", reason=str(error))
            self._detector.not_ready[candidate.name] = error.problems[0]
            return True
        for older in self._line.add(pinned):
            log.info("a queued checkpoint was replaced by a newer version", name=candidate.name)
            await self._delivery.release(older)
        self._book.handled[candidate.name] = candidate
        self._status.write_seconds = self._detector.write_seconds(candidate)
        if self._line.newest_first:
            self._delivery.overtake()
        return True

    def _pin(self, candidate: Candidate) -> HeldCheckpoint:
        """Hold the data by link and the pointers as they were read; all by link where no copy has room.

        Raises:
            Changed, Refused: See `Pins.pin`.
        """
        pins, root, texts = self._gear.pins, self._detector.root, self._detector.pointer_texts(candidate)
        data = tuple((name, identity) for name, identity in candidate.files if name not in texts)
        pinned = pins.pin(Candidate(candidate.name, data), root, self._now())
        if not texts:
            return pinned
        try:
            return add_pointers(pinned, candidate, texts)
        except OSError as error:
            log.info("holding pointers by link: they cannot be copied", reason=str(error))
            pinned.release()
            return pins.pin(candidate, root, self._now())
