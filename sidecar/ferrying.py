"""From the checkpoint directory to the destination: looks, pins, uploads, commits, frees, remembers.

Two tasks share one queue. One looks and pins, so that what is whole is held before the trainer can replace
it. The other makes it durable, strictly in the order in which it became whole: a commit's number is its age.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from podferry.contract.api import CheckpointStatus, Durability, DurableCheckpoint
from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, FerryError, PermanentError, Problem, Refused
from podferry.sidecar.complete import Candidate
from podferry.sidecar.detector import Detector, gather
from podferry.sidecar.journal import Journal
from podferry.sidecar.pin import Pinned, Pins
from podferry.sidecar.retain import expendable, free, full_problem, pointers, pressed
from podferry.sidecar.settings import CheckpointSettings
from podferry.sidecar.state import State
from podferry.sidecar.upload import Uploader, add_pointers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Gear:
    """What finds, holds, sends and remembers."""

    detector: Detector
    pins: Pins
    uploader: Uploader
    journal: Journal


class CheckpointFerry:
    """The checkpoints of one agent."""

    def __init__(
        self,
        gear: Gear,
        state: State,
        settings: CheckpointSettings,
        keep_local: int = 1,
        now: Callable[[], float] = time.time,
    ) -> None:
        assert state.status.checkpoints is not None  # noqa: S101 - only made for a pod with checkpoints
        self._detector, self._pins = gear.detector, gear.pins
        self._uploader, self._journal = gear.uploader, gear.journal
        self._state = state
        self._status: CheckpointStatus = state.status.checkpoints
        self._settings = settings
        self._keep_local = keep_local
        self._now = now
        self._final = False
        self._asked = self._looked = 0
        self._queue: list[Pinned] = self._pins.adopt()
        self._sending: Pinned | None = None
        self._queued = asyncio.Event()
        self._failures: dict[str, FerryError] = {}
        self._full: Problem | None = None
        record = self._journal.record
        # The version of each name that needs no pin: durable, restored, or held.
        self._handled = {name: Candidate(name, files) for name, files in record.handled.items()}
        self._handled.update((pinned.candidate.name, pinned.candidate) for pinned in self._queue)
        self._status.durable = list(record.durable)
        self._status.restored = record.restored

    def mark_restored(self, names: Iterable[str]) -> None:
        """Take what was restored as it lies there now: it needs no upload."""
        wanted = set(names)
        for candidate in gather(self._detector.root)[1].values():
            if wanted.intersection(dict(candidate.files)):
                self._remember(candidate)
        self._journal.save()

    async def run(self) -> None:
        """Look and upload until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._upload_all())

    async def _watch(self) -> None:
        closed: set[str] = set()
        while True:
            asked = self._asked
            for candidate in await self._detector.look(self._handled, closed, final=self._final):
                self._hold(candidate)
            self._looked = asked
            self._relieve()
            self._look_for_room()
            self._tell()
            closed = await self._detector.hint()

    def _hold(self, candidate: Candidate) -> None:
        """Pin and queue; a queued older version of the same name gives way."""
        try:
            pinned = self._pin(candidate)
        except Changed as error:
            log.info("a checkpoint changed while it was pinned: looking again", reason=str(error))
            self._detector.wake()
            return
        except Refused as error:
            log.warning("a checkpoint cannot be held", reason=str(error))
            self._detector.waiting[candidate.name] = error.problems[0]
            return
        for older in [held for held in self._queue if held.candidate.name == candidate.name]:
            log.info("a queued checkpoint was replaced by a newer version", name=candidate.name)
            self._queue.remove(older)
            older.release()
        self._handled[candidate.name] = candidate
        self._queue.append(pinned)
        self._queued.set()

    def _pin(self, candidate: Candidate) -> Pinned:
        """Hold the data by link and the pointers as they were read; all by link where no copy has room.

        Raises:
            Changed, Refused: See `Pins.pin`.
        """
        root, texts = self._detector.root, self._detector.texts(candidate)
        data = tuple((name, identity) for name, identity in candidate.files if name not in texts)
        pinned = self._pins.pin(Candidate(candidate.name, data), root, self._now())
        if not texts:
            return pinned
        try:
            return add_pointers(pinned, candidate, texts)
        except OSError as error:
            log.info("holding pointers by link: they cannot be copied", reason=str(error))
            pinned.release()
            return self._pins.pin(candidate, root, self._now())

    async def _upload_all(self) -> None:
        while True:
            while not self._queue:
                self._queued.clear()
                await self._queued.wait()
            self._sending = self._queue.pop(0)
            again = await self._upload(self._sending)
            if again:
                self._queue.insert(0, self._sending)
            self._sending = None
            self._tell()
            if again:
                await asyncio.sleep(self._settings.retry_after)

    async def _upload(self, pinned: Pinned) -> bool:
        """Make one durable; whether it must be tried again."""
        name = pinned.candidate.name
        try:
            commit = await self._uploader.upload(pinned)
        except Changed as error:
            log.info("abandoned: overwritten in place while it was read", name=name, reason=str(error))
            if self._handled.get(name) == pinned.candidate:
                self._handled.pop(name)
            self._failures.pop(name, None)
            pinned.release()
            self._detector.wake()
            return False
        except FerryError as error:
            log.warning("a checkpoint is not durable yet", name=name, reason=str(error))
            self._failures[name] = error
            return True
        self._failures.pop(name, None)
        self._committed(pinned, commit)
        return False

    def _committed(self, pinned: Pinned, commit: Commit) -> None:
        now = self._now()
        durable = DurableCheckpoint(
            commit.name, commit.sequence, commit.step, commit.bytes, pinned.completed_at, durable_at=now
        )
        log.info(
            "checkpoint durable",
            name=commit.name,
            sequence=commit.sequence,
            bytes=commit.bytes,
            seconds=round(now - pinned.completed_at, 3),
        )
        self._status.durable.append(durable)
        self._journal.record.durable.append(durable)
        self._remember(pinned.candidate)
        self._journal.save()
        pinned.release()
        self._relieve()

    def _remember(self, candidate: Candidate) -> None:
        self._journal.record.handled[candidate.name] = candidate.files
        newer = any(held.candidate.name == candidate.name for held in self._queue)
        if not newer:
            self._handled[candidate.name] = candidate

    def _relieve(self) -> None:
        """Free durable checkpoints while the volume is pressed."""
        root = self._detector.root
        if not pressed(root, self._settings.pressure):
            return
        durable = {name: Candidate(name, files) for name, files in self._journal.record.handled.items()}
        present = {n: c for n, c in self._detector.present.items() if c.within(durable.get(n))}
        # By the last commit of each name: a name that is written again and again is as old as its newest.
        order = list(dict.fromkeys(done.name for done in reversed(self._status.durable)))[::-1]
        for candidate in expendable(order, present, self._keep_local, pointers(root, self._detector.present)):
            if free(root, candidate):
                del self._detector.present[candidate.name]
            if not pressed(root, self._settings.pressure):
                return

    def _look_for_room(self) -> None:
        """Say once that the volume has become full: the trainer is about to fail, or waits."""
        before, self._full = self._full, full_problem(self._detector.root, self._settings.full)
        if self._full is not None and before is None:
            log.warning(self._full.what, measured=self._full.measured, remedy=self._full.remedy)

    def _tell(self) -> None:
        """Bring the status up to date and wake those who wait."""
        held = self._line()
        sizes = {name: self._detector.present[name].bytes for name in self._detector.waiting}
        sizes |= {pinned.candidate.name: pinned.candidate.bytes for pinned in held}
        self._status.pending = sorted(sizes)
        self._status.pending_bytes = sum(sizes.values())
        failed = [problem for name in sorted(sizes) for problem in self._failed(name)]
        flawed = self._detector.waiting.values() if self._final else ()
        self._status.problems = [*failed, *flawed, *([self._full] if self._full else [])]
        self._state.changed()

    async def durable(self, seconds: float, *, final: bool = False) -> Durability:
        """Wait until all that lies in the directory now is durable, at most `seconds`.

        Args:
            seconds: The longest wait.
            final: Nobody writes any more.
        """
        self._final |= final
        now, deadline = self._now(), time.monotonic() + seconds
        self._asked += 1
        mine = self._asked
        self._detector.wake()
        if not await self._state.wait_for(lambda: self._looked >= mine, seconds):
            # What lies there is unknown, so nothing can be said to be durable.
            unknown = Problem("the checkpoint directory has not been looked at yet", f"after {seconds:g} s")
            return Durability(durable=False, pending=tuple(self._status.pending), problems=(unknown,))
        targets = set(self._status.pending)
        await self._state.wait_for(lambda: self._settled(targets, now), max(deadline - time.monotonic(), 0.0))
        return self._durability(targets, now)

    def _open(self, targets: set[str], asked: float) -> set[str]:
        """Which targets are neither durable nor gone; a version that was whole after the call counts."""
        newer = {durable.name for durable in self._status.durable if durable.completed_at >= asked}
        return targets & set(self._status.pending) - newer

    def _hopeless(self, names: set[str]) -> bool:
        flawed = set(self._detector.waiting) if self._final else set()
        return bool(names) and names <= flawed | self._refused()

    def _refused(self) -> set[str]:
        """What the destination refuses for good: the first in line, and all that wait behind it."""
        line = [held.candidate.name for held in self._line()]
        refused = bool(line) and isinstance(self._failures.get(line[0]), PermanentError)
        return set(line) if refused else set()

    def _line(self) -> list[Pinned]:
        return [*([self._sending] if self._sending else []), *self._queue]

    def _settled(self, targets: set[str], asked: float) -> bool:
        left = self._open(targets, asked)
        return not left or self._hopeless(left)

    def _durability(self, targets: set[str], asked: float) -> Durability:
        left = self._open(targets, asked)
        problems: list[Problem] = [p for name in sorted(left) for p in self._problems(name)]
        last = self._status.durable[-1] if self._status.durable else None
        return Durability(
            durable=not left,
            pending=tuple(sorted(left)),
            problems=tuple(problems),
            hopeless=self._hopeless(left),
            last=last,
        )

    def _problems(self, name: str) -> Iterable[Problem]:
        waiting = self._detector.waiting.get(name)
        return self._failed(name) or ((waiting,) if waiting else ())

    def _failed(self, name: str) -> tuple[Problem, ...]:
        return self._failures[name].problems if name in self._failures else ()
