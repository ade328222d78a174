"""Finds checkpoints that have become complete since the last scan, and says which of them are sure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from podferry.contract.errors import Problem
from podferry.contract.http_api import Marked
from podferry.contract.spec import Completion
from podferry.sidecar.checkpoint.detect.assessor import UNKNOWN, Assessor, TrainerContext
from podferry.sidecar.checkpoint.detect.candidate import Candidate, ready_at
from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.change_tracker import ChangeTracker, WriteTimes
from podferry.sidecar.checkpoint.detect.completion_marks import CompletionMarks, not_found, resolve
from podferry.sidecar.checkpoint.detect.directory_scan import LeftOut, scan_directory
from podferry.sidecar.checkpoint.detect.evidence import Seen
from podferry.sidecar.checkpoint.detect.move_tracker import MoveTracker
from podferry.sidecar.checkpoint.detect.pointer_tracker import PointerTracker
from podferry.sidecar.checkpoint.detect.scan_pass import ScanPass
from podferry.sidecar.checkpoint.detect.shrinking import Shrinking
from podferry.sidecar.checkpoint.detect.starvation import STARVED_PAUSES, HeldUp, Starvation
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.checkpoint.detect.written_places import WrittenPlaces, look
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.file_identity import FileIdentity, Files

IDLE_SECONDS = 3600.0
"""To wait if nothing is due; the watch cuts it to its own interval."""


def scan_checkpoints(root: Path) -> tuple[dict[str, FileIdentity], dict[str, Candidate]]:
    """The files below `root`, and the checkpoints that they form."""
    found = scan_directory(root)
    return found.files, found.present


class Detector:
    """Scans the checkpoint directory.

    Attributes:
        present: Every candidate as of the last scan, complete or not, by name.
        not_ready: Why each incomplete candidate is not complete, by name.
        links: The real names of files that links lead to, by name.
        left_out: What is not uploaded, by name.
        places: Where files were written: a restarted worker needs this.
        open_files: See below.

    Args:
        root: The directory.
        watch: Hints when to scan.
        settings: How long files must be quiet.
        monotonic: A clock, seconds.
        completion: Whether a checkpoint must be marked to be complete.
        context: What is known about the trainer.
    """

    def __init__(
        self,
        root: Path,
        watch: Watch,
        settings: CheckpointSettings,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        completion: Completion = Completion.AUTO,
        context: TrainerContext = UNKNOWN,
    ) -> None:
        self.open_files = context.open_files
        self.root, self._watch, self._settings, self._monotonic = root, watch, settings, monotonic
        self._completion = completion
        self._assessor = Assessor(root, context)
        self.present: dict[str, Candidate] = {}
        self.not_ready: dict[str, Problem] = {}
        self.links: dict[str, str] = {}
        self.left_out: dict[str, LeftOut] = {}
        self._shrinking = Shrinking()
        self._begun: set[str] = set()
        self._tracker, self._pointers = ChangeTracker(), PointerTracker(root)
        self._moves, self.places = MoveTracker(), WrittenPlaces()
        self._times, self._marks = WriteTimes(), CompletionMarks()
        self._starvation = Starvation(STARVED_PAUSES * settings.quiet_seconds_no_close)
        self._held_up = HeldUp(STARVED_PAUSES * settings.quiet_seconds_no_close)
        self._due_seconds = IDLE_SECONDS

    def watch_from(self, now_ns: int) -> None:
        """This worker began then, by the file system's clock: it knows little of files that are older."""
        self._tracker.watched_ns = now_ns

    async def wait_for_change(self) -> set[str]:
        """Wait until a scan is worthwhile; the names of files closed since the last call."""
        closed = await self._watch.wait(self._due_seconds)
        created = self._names(path for path in self._watch.created if path.parent == self.root)
        self._moves.report(self._names(self._watch.moved), created)
        self._begun = self._names(self._watch.begun)
        return self._names(closed)

    def _names(self, paths: Iterable[Path]) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in paths}

    def wake(self) -> None:
        """End the current `wait_for_change`."""
        self._watch.wake()

    async def scan(
        self, settled: dict[str, Candidate], closed: set[str], *, final: bool, succeeded: bool = False
    ) -> list[Candidate]:
        """The complete checkpoints that differ from the settled version of their name, each with its doubts.

        Args:
            settled: Versions that need no upload any more, by name.
            closed: The result of `wait_for_change`.
            final: Nothing writes any more: candidates need not be quiet.
            succeeded: The trainer has ended, and successfully.

        Returns:
            In the order of their last change, oldest first. Each includes the pointers that named it, even if
            they have moved on: see `pointer_texts`.
        """
        now, epoch, marked = self._monotonic(), time.time(), dict(self._marks.files)
        scanned = await asyncio.to_thread(scan_directory, self.root)
        files, present = scanned.files, scanned.present
        self.links, self.left_out = scanned.links, scanned.left_out
        self.times.keep({identity.inode for identity in files.values()})
        await asyncio.to_thread(self._track_places, files, present)
        self._tracker.update(files, closed, now, self._moves.moved, self._begun)
        self._moves.update(present, closed, lambda name: (self.root / name).is_dir())
        self._shrinking.update(self.present, present, now)
        self._times.update({name: tuple(one.data_files.items()) for name, one in present.items()}, epoch)
        self._marks.drop_missing(present.keys(), marked)
        await asyncio.to_thread(self._pointers.update, self._tracker.files, present, None if final else now)
        self._assessor.begin(settled.values(), present)
        await asyncio.to_thread(self._assessor.look_at_processes)
        new = [one for one in present.values() if not one.is_subset_of(settled.get(one.name))]
        rested = partial(self._rested, now, succeeded=succeeded)
        found = self._new_pass(now, rested, final=final)
        for candidate in sorted(new, key=lambda one: one.changed_ns):
            await found.examine(candidate)
        waiting = [candidate for candidate, long in found.pausing if long]
        accepted = {candidate.name for candidate in found.complete}
        self._starvation.update(waiting, present.keys() - accepted, now)
        self._held_up.update(found.held_up, now)
        left = [self._ready_at(candidate, long=long) - now for candidate, long in found.pausing]
        left.append(await self._assessor.look_again(present, rested, self._seen))
        self._due_seconds = min([IDLE_SECONDS, *left])
        self._assessor.settle_marked(self._marks.is_marked)
        if succeeded:
            await self._assessor.settle_by_success()
        # Both together and only now: others read them during this scan.
        self.present, self.not_ready = present, found.not_ready
        for candidate in found.complete:
            self._times.mark_complete(candidate.name)
            # The first look after a change shows whether a file was emptied; few can be watched for it.
            if candidate.doubts or len(candidate.data_files) == 1:
                self._watch.expect_change(self.root / name for name in candidate.data_files)
        again = [name for name, one in self._tracker.files.items() if one.touched and not one.patched]
        self._watch.expect_change(self.root / name for name in again)
        return [self._pointers.with_moved_pointers(candidate) for candidate in found.complete]

    @property
    def proven(self) -> list[Candidate]:
        """Doubtful versions that the last scan found or an earlier one: they are proven complete now."""
        return self._assessor.proven

    @property
    def times(self) -> ChangeTimes:
        """Which change times show a rename: a restarted worker needs this."""
        return self._assessor.times

    def pointer_texts(self, candidate: Candidate) -> dict[str, bytes]:
        """The contents of a candidate's pointers, if read with the identity that the candidate has."""
        return self._pointers.texts(candidate)

    def write_seconds(self, candidate: Candidate) -> float:
        """Seconds from the first to the last observed write of a checkpoint."""
        return self._times.seconds(candidate.name)

    @property
    def marks(self) -> dict[str, Files]:
        """The marked versions, by name: a restarted worker needs them."""
        return self._marks.files

    def describe_questions(self) -> str:
        """One line for people: how the agent finds out which files are open or have been closed."""
        asked = [self.open_files.describe()] if self.open_files is not None else []
        return "; ".join([*asked, self._watch.describe()])

    async def mark(self, name_or_step: str) -> Marked:
        """Mark the current version of the checkpoint of that name, or the newest state of a step, complete.

        If the result has problems, it was not marked: fix them and mark it again.
        """
        _, present = await asyncio.to_thread(scan_checkpoints, self.root)
        candidate = resolve(name_or_step, present)
        if candidate is None:
            return Marked(problems=(not_found(name_or_step, present.keys()),))
        problem = await self._assessor.incomplete(candidate, marked=True)
        if problem is not None:
            return Marked(candidate.name, (problem,))
        self._marks.mark(candidate)
        self.wake()
        return Marked(candidate.name)

    def _new_pass(self, now: float, rested: Callable[[Candidate], float], *, final: bool) -> ScanPass:
        def is_quiet(candidate: Candidate, long: bool) -> bool:
            return final or self._ready_at(candidate, long=long) <= now

        def starves(candidate: Candidate) -> bool:
            return self._starvation.starves(candidate, now)

        only_marked = self._completion is Completion.MARKED

        def is_overdue(candidate: Candidate) -> bool:
            return self._held_up.is_overdue(candidate, now)

        marks, rules = self._marks.is_marked, (starves, is_overdue)
        return ScanPass(self._assessor, is_quiet, self._seen, marks, rested, *rules, only_marked)

    def _seen(self, candidate: Candidate) -> Seen:
        files = {name: self._tracker.files[name] for name, _ in candidate.files}
        below = ((name, one) for name, one in self.left_out.items() if name.startswith(f"{candidate.name}/"))
        return Seen(
            frozenset(name for name, file in files.items() if file.closed),
            frozenset(name for name, file in files.items() if file.moved),
            self._moves.was_moved_in(candidate),
            self._moves.was_written_in_place(candidate) or self.places.has(candidate.name),
            tuple(f"{name} is {one.reason}" for name, one in below if one.loses),
            frozenset(name for name, file in files.items() if file.lingered),
            {name: one for name, one in self._tracker.emptied.items() if name in files},
            frozenset(name for name, file in files.items() if self.places.has_file(name, file.identity)),
            written_at=self.places.former_names({name: one.identity.inode for name, one in files.items()}),
            patched=frozenset(name for name, file in files.items() if file.patched),
        )

    def _track_places(self, files: Mapping[str, FileIdentity], present: Mapping[str, Candidate]) -> None:
        """Look at what has changed in the checkpoints, and at their directories."""
        known = self._tracker.files
        names = [(one.name, name, identity) for one in present.values() for name, identity in one.files]
        changed = {name for _, name, now in names if name not in known or known[name].identity != now}
        folders = {top for top, name, _ in names if name.startswith(f"{top}/")}
        found = look(self.root, changed | (self._moves.moved & files.keys()) | folders)
        self.places.update(found, self._moves.moved, {one.inode for one in files.values()})

    def _rested(self, now: float, candidate: Candidate, *, succeeded: bool) -> float:
        """Seconds without a change, 0 before the long pause is over; a failure at the end replaces none."""
        if succeeded:
            return float("inf")
        pause = self._settings.quiet_seconds_no_close
        rested = now - self._ready_at(candidate, long=True) + pause
        return rested if rested >= pause else 0.0

    def _ready_at(self, candidate: Candidate, *, long: bool) -> float:
        """When all files will have been unchanged for long enough; unclosed ones need the long pause."""
        files = [self._tracker.files[name] for name, _ in candidate.files]
        pause = self._settings.quiet_seconds_no_close
        ready = ready_at(files, pause if long else self._settings.quiet_seconds, pause)
        return max(ready, self._shrinking.last(candidate.name) + pause)
