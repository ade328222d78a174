"""Finds checkpoints that have become complete since the last scan."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from podferry.contract.errors import Problem
from podferry.contract.http_api import Marked
from podferry.contract.spec import Completion
from podferry.sidecar.checkpoint.detect.candidate import (
    Candidate,
    candidates,
    incomplete_reason,
    needs_long_quiet,
    ready_at,
    uncommittable_reason,
)
from podferry.sidecar.checkpoint.detect.change_tracker import ChangeTracker, WriteTimes
from podferry.sidecar.checkpoint.detect.completion_marks import CompletionMarks, not_found, resolve
from podferry.sidecar.checkpoint.detect.format_checks import check_format, missing_shards
from podferry.sidecar.checkpoint.detect.history import History, history_of, missing_sticky_file, torn_file
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, is_pointer, is_text, read_small
from podferry.sidecar.checkpoint.detect.pointer_tracker import PointerTracker
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.file_identity import FileIdentity, Files, scan

MARK_IT = "Mark it with `podferry checkpoint done`, or leave podferry.io/complete at its default"
RENAME_OR_MARK = (
    "If it is complete, mark it with `podferry checkpoint done`; write such files under a temporary name and "
    "rename them when they are done"
)
IDLE_SECONDS = 3600.0
"""To wait if nothing is due; the watch cuts it to its own interval."""


def scan_checkpoints(root: Path) -> tuple[dict[str, FileIdentity], dict[str, Candidate]]:
    """The files below `root`, and the checkpoints that they form."""
    files = scan(root)
    small = [name for name in POINTERS if name in files and is_pointer(name, files[name].size)]
    texts = {name: text for name, text in read_small(root, small).items() if is_text(text)}
    return files, candidates(files, texts)


class Detector:
    """Scans the checkpoint directory.

    Attributes:
        present: Every candidate as of the last scan, complete or not, by name.
        not_ready: Why each incomplete candidate is not complete, by name.
        open_files: See below.

    Args:
        root: The directory.
        watch: Hints when to scan.
        settings: How long files must be quiet.
        monotonic: A clock, seconds.
        completion: Whether a checkpoint must be marked to be complete.
        gang: Other pods have the other parts of each checkpoint, and this one is not the coordinator's.
        open_files: Says which files are open for writing; None if nobody asks.
    """

    def __init__(
        self,
        root: Path,
        watch: Watch,
        settings: CheckpointSettings,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        completion: Completion = Completion.AUTO,
        gang: bool = False,
        open_files: OpenFiles | None = None,
    ) -> None:
        self.open_files = open_files
        self.root, self._watch, self._settings, self._monotonic = root, watch, settings, monotonic
        self._completion, self._gang = completion, gang
        self.present: dict[str, Candidate] = {}
        self.not_ready: dict[str, Problem] = {}
        self._shrunk_at: dict[str, float] = {}
        self._tracker, self._pointers = ChangeTracker(), PointerTracker(root)
        self._times, self._marks = WriteTimes(), CompletionMarks()
        self._due_seconds = IDLE_SECONDS

    async def wait_for_change(self) -> set[str]:
        """Wait until a scan is worthwhile; the names of files closed since the last call."""
        closed = await self._watch.wait(self._due_seconds)
        return {path.relative_to(self.root).as_posix() for path in closed}

    def wake(self) -> None:
        """End the current `wait_for_change`."""
        self._watch.wake()

    async def scan(self, settled: dict[str, Candidate], closed: set[str], *, final: bool) -> list[Candidate]:
        """The complete checkpoints that differ from the settled version of their name.

        Args:
            settled: Versions that need no upload any more, by name.
            closed: The result of `wait_for_change`.
            final: Nothing writes any more: candidates need not be quiet.

        Returns:
            In the order of their last change, oldest first. Each includes the pointers that named it, even if
            they have moved on: see `pointer_texts`.
        """
        now, epoch = self._monotonic(), time.time()
        files, present = await asyncio.to_thread(scan_checkpoints, self.root)
        self._tracker.update(files, closed, now)
        self._track_shrinking(present, now)
        self._times.update({name: tuple(one.data_files.items()) for name, one in present.items()}, epoch)
        self._marks.keep(present.keys())
        await asyncio.to_thread(self._pointers.update, self._tracker.files, present, None if final else now)
        self._due_seconds = IDLE_SECONDS
        new = [one for name, one in present.items() if not one.is_subset_of(settled.get(name))]
        new.sort(key=lambda candidate: candidate.changed_ns)
        not_ready = await self._check_all(new, settled, now, final=final)
        # Both together and only now: others read them during this scan.
        self.present, self.not_ready = present, not_ready
        complete = [candidate for candidate in new if candidate.name not in not_ready]
        for candidate in complete:
            self._times.mark_complete(candidate.name)
        return [self._pointers.with_moved_pointers(candidate) for candidate in complete]

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
        """Mark the current version of the checkpoint of that name, or of the newest of that step, complete.

        If the result has problems, it was not marked: fix them and mark it again.
        """
        _, present = await asyncio.to_thread(scan_checkpoints, self.root)
        candidate = resolve(name_or_step, present)
        if candidate is None:
            return Marked(problems=(not_found(name_or_step, present.keys()),))
        reason = uncommittable_reason(candidate) or await asyncio.to_thread(self._format_defect, candidate)
        if reason is not None:
            return Marked(candidate.name, (Problem(f"{candidate.name} is not complete", reason),))
        self._marks.mark(candidate)
        self.wake()
        return Marked(candidate.name)

    async def _check_all(
        self, new: list[Candidate], settled: dict[str, Candidate], now: float, *, final: bool
    ) -> dict[str, Problem]:
        """Why each is not complete yet; complete ones have no entry.

        No checkpoint overtakes an older one that only has to stay quiet for longer: commits follow the order
        of the last changes, so that the newest commit is never followed by an older one.
        """
        not_ready: dict[str, Problem] = {}
        oldest_active: Candidate | None = None
        accepted = list(settled.values())
        for candidate in new:
            name, marked = candidate.name, self._marks.is_marked(candidate)
            if self._completion is Completion.MARKED and not marked:
                # It may never be marked, so newer ones do not wait for it.
                not_ready[name] = Problem(f"{name} has not been marked", remedy=MARK_IT)
                continue
            quiet = final or marked or self._is_quiet(candidate, now)
            if oldest_active is None and not quiet:
                oldest_active = candidate
            if not quiet:
                problem: Problem | None = Problem(f"{name} is still being written")
            elif oldest_active is not None:
                problem = Problem(f"{name} waits for {oldest_active.name}, which is older")
            else:
                problem = await self._check_content(candidate, marked=marked)
                if problem is None and not marked:
                    problem = await self._check_plausibility(candidate, history_of(candidate, accepted, new))
            if problem is None:
                accepted.append(candidate)
            else:
                not_ready[name] = problem
        return not_ready

    def _track_shrinking(self, present: dict[str, Candidate], now: float) -> None:
        """Record when a checkpoint last lost a file: one that is being deleted looks quiet.

        A pointer that moves on to the next checkpoint does not count.
        """
        self._shrunk_at = {name: at for name, at in self._shrunk_at.items() if name in present}
        for name, previous in self.present.items():
            if name in present and previous.data_files.keys() - dict(present[name].files).keys():
                self._shrunk_at[name] = now

    def _is_quiet(self, candidate: Candidate, now: float) -> bool:
        files = [self._tracker.files[name] for name, _ in candidate.files]
        short, long = self._settings.quiet_seconds, self._settings.quiet_seconds_no_close
        ready, latest = ready_at(files, short, long), ready_at(files, long, long)
        if ready <= now < latest and needs_long_quiet(candidate, gang=self._gang):
            ready = latest
        ready = max(ready, self._shrunk_at.get(candidate.name, float("-inf")) + long)
        if ready > now:
            self._due_seconds = min(self._due_seconds, ready - now)
        return ready <= now

    async def _check_content(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        """Names, unless marked, and formats."""
        names = uncommittable_reason(candidate) if marked else incomplete_reason(candidate, gang=self._gang)
        reason = names or await asyncio.to_thread(self._format_defect, candidate)
        return Problem(f"{candidate.name} is not complete", reason) if reason is not None else None

    async def _check_plausibility(self, candidate: Candidate, history: History) -> Problem | None:
        reason = missing_sticky_file(candidate, history, gang=self._gang)
        reason = reason or await asyncio.to_thread(torn_file, self.root, candidate, history)
        if reason is None:
            return None
        return Problem(f"{candidate.name} may not be complete", reason, RENAME_OR_MARK)

    def _format_defect(self, candidate: Candidate) -> str | None:
        names = [name for name, _ in candidate.files]
        for name in names:
            reason = check_format(self.root / name).defect
            if reason is not None:
                return f"{name}: {reason}"
        return missing_shards(self.root, names)
