"""Finds checkpoints that have become whole since the last look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from podferry.contract.api import Marked
from podferry.contract.errors import Problem
from podferry.contract.spec import Completion
from podferry.sidecar.checkpoint.detect.candidate import (
    Candidate,
    candidates,
    needs_long_quiet,
    quiet_since,
    unfit,
    unready,
)
from podferry.sidecar.checkpoint.detect.change_tracker import ChangeTracker, WriteTimes
from podferry.sidecar.checkpoint.detect.explicit_marks import CompletionMarks, not_found, resolve
from podferry.sidecar.checkpoint.detect.format_checks import check, defect, missing_shards
from podferry.sidecar.checkpoint.detect.history import History, history_of, missed, shortened
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, is_pointer, is_text, read_small
from podferry.sidecar.checkpoint.detect.pointer_tracker import PointerTracker, data
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.file_identity import FileIdentity, Files, scan

MARK_IT = "Mark it with `podferry checkpoint done`, or leave podferry.io/complete at its default"
IF_WHOLE = (
    "If it is whole, mark it with `podferry checkpoint done`; write such files aside and rename them when "
    "they are done"
)
IDLE = 3600.0
"""Seconds to wait where nothing is due; the watch cuts it to its own interval."""


def gather(root: Path) -> tuple[dict[str, FileIdentity], dict[str, Candidate]]:
    """The files below `root`, and the checkpoints that they form."""
    found = scan(root)
    small = [name for name in POINTERS if name in found and is_pointer(name, found[name].size)]
    texts = {name: text for name, text in read_small(root, small).items() if is_text(text)}
    return found, candidates(found, texts)


def moved_in(path: Path) -> bool:
    """Whether a file was renamed, or given its times, after its last byte was written.

    Writing sets both times at once. What is overwritten in place may be linked besides, as pins are, and
    each link that comes or goes looks the same.
    """
    try:
        stat = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.st_ctime_ns > stat.st_mtime_ns


class Detector:
    """Looks at the checkpoint directory.

    Attributes:
        present: Every candidate as it lay there at the last look, whole or not, by name.
        waiting: Why each that is not whole is not, by name.

    Args:
        root: The directory.
        watch: Tells when to look.
        settings: How long files must be quiet.
        monotonic: A clock, seconds.
        completion: Whether a checkpoint must be marked to count as whole.
        gang: Other pods have the other parts of each checkpoint, and this one is not the coordinator's.
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
    ) -> None:
        self.root = root
        self.present: dict[str, Candidate] = {}
        self.waiting: dict[str, Problem] = {}
        self._watch = watch
        self._settings = settings
        self._monotonic = monotonic
        self._tracker = ChangeTracker()
        self._shrunk: dict[str, float] = {}
        self._pointed = PointerTracker(root)
        self._times = WriteTimes()
        self._marks = CompletionMarks()
        self._completion = completion
        self._gang = gang
        self._due = IDLE

    async def hint(self) -> set[str]:
        """Wait until a look is worth while; what was closed since the last call, by name."""
        closed = await self._watch.wait(self._due)
        return {path.relative_to(self.root).as_posix() for path in closed}

    def wake(self) -> None:
        """End the present `hint`."""
        self._watch.wake()

    async def look(self, handled: dict[str, Candidate], closed: set[str], *, final: bool) -> list[Candidate]:
        """The checkpoints that are whole now and differ from what was handled under their names.

        Args:
            handled: What needs no upload any more, by name.
            closed: What `hint` told.
            final: Nobody writes any more: what has a sound structure is whole without being quiet.

        Returns:
            Oldest first, by the time of their last change. Each has the pointers that named it while it lay
            there, also where they have moved on: `texts` tells what stood in them.
        """
        now, epoch = self._monotonic(), time.time()
        found, present = await asyncio.to_thread(gather, self.root)
        self._tracker.update(found, closed, now)
        self._note_shrunk(present, now)
        self._times.update({name: tuple(data(held).items()) for name, held in present.items()}, epoch)
        self._marks.keep(present.keys())
        await asyncio.to_thread(self._pointed.read, self._tracker.files, present, None if final else now)
        self._due = IDLE
        fresh = [candidate for name, candidate in present.items() if not candidate.within(handled.get(name))]
        fresh.sort(key=lambda candidate: candidate.changed_ns)
        reasons = await self._reasons(fresh, handled, now, final=final)
        # Both at once and only now: others read them while this look is under way.
        self.present = present
        self.waiting = {name: problem for name, problem in reasons.items() if problem is not None}
        whole = [candidate for candidate in fresh if candidate.name not in self.waiting]
        for candidate in whole:
            self._times.end(candidate.name)
        return [self._pointed.completed(candidate) for candidate in whole]

    def texts(self, candidate: Candidate) -> dict[str, bytes]:
        """What stood in those of a candidate's pointers that were read in the identity that it has."""
        return self._pointed.texts(candidate)

    def written(self, candidate: Candidate) -> float:
        """Seconds from the first to the last change that was seen of a checkpoint: what its writing took."""
        return self._times.seconds(candidate.name)

    @property
    def marks(self) -> dict[str, Files]:
        """The versions that were marked, by name: a worker that starts again needs them."""
        return self._marks.files

    async def mark(self, name_or_step: str) -> Marked:
        """Take a checkpoint for whole as it lies there now.

        Args:
            name_or_step: Its name, as it lies in the directory, or its step, of which the newest is meant.

        Returns:
            What was marked. With problems it was not, and must be marked again once they are gone.
        """
        _, present = await asyncio.to_thread(gather, self.root)
        candidate = resolve(name_or_step, present)
        if candidate is None:
            return Marked(problems=(not_found(name_or_step, present.keys()),))
        reason = unfit(candidate) or await asyncio.to_thread(self._flaw, candidate)
        if reason is not None:
            return Marked(candidate.name, (Problem(f"{candidate.name} is not whole", reason),))
        self._marks.mark(candidate)
        self.wake()
        return Marked(candidate.name)

    async def _reasons(
        self, fresh: list[Candidate], handled: dict[str, Candidate], now: float, *, final: bool
    ) -> dict[str, Problem | None]:
        """Why each is not whole yet, None where it is.

        None overtakes an older one that only has to be quiet for a while longer: commits come in the order
        of the last changes, so that the newest is never followed by an older one.
        """
        reasons: dict[str, Problem | None] = {}
        older: Candidate | None = None
        taken = list(handled.values())
        for candidate in fresh:
            marked = self._marks.holds(candidate)
            if self._completion is Completion.MARKED and not marked:
                # It may never be: nothing waits for it.
                reasons[candidate.name] = Problem(f"{candidate.name} has not been marked", remedy=MARK_IT)
                continue
            quiet = final or marked or self._quiet(candidate, now)
            if older is None and not quiet:
                older = candidate
            if not quiet:
                reasons[candidate.name] = Problem(f"{candidate.name} is still being written")
            elif older is not None:
                reasons[candidate.name] = Problem(f"{candidate.name} waits for {older.name}, which is older")
            else:
                problem = await self._flawed(candidate, marked=marked)
                if problem is None and not marked:
                    problem = await self._doubt(candidate, history_of(candidate, taken, fresh))
                if problem is None:
                    taken.append(candidate)
                reasons[candidate.name] = problem
        return reasons

    def _note_shrunk(self, present: dict[str, Candidate], now: float) -> None:
        """Remember since when a checkpoint has lost no more files: what is being removed looks quiet.

        A pointer that moves on to the next checkpoint takes nothing from this one.
        """
        self._shrunk = {name: since for name, since in self._shrunk.items() if name in present}
        for name, before in self.present.items():
            if name in present and data(before).keys() - dict(present[name].files).keys():
                self._shrunk[name] = now

    def _quiet(self, candidate: Candidate, now: float) -> bool:
        seen = [self._tracker.files[name] for name, _ in candidate.files]
        short, long = self._settings.quiet_seconds, self._settings.quiet_seconds_no_close
        ready, longest = quiet_since(seen, short, long), quiet_since(seen, long, long)
        if ready <= now < longest and needs_long_quiet(candidate, gang=self._gang):
            ready = longest
        ready = max(ready, self._shrunk.get(candidate.name, float("-inf")) + long)
        if ready > now:
            self._due = min(self._due, ready - now)
        return ready <= now

    async def _flawed(self, candidate: Candidate, *, marked: bool) -> Problem | None:
        names = unfit(candidate) if marked else unready(candidate, gang=self._gang)
        reason = names or await asyncio.to_thread(self._flaw, candidate)
        return Problem(f"{candidate.name} is not whole", reason) if reason is not None else None

    async def _doubt(self, candidate: Candidate, known: History) -> Problem | None:
        """What those before it in its series say against a checkpoint that seems whole."""
        reason = missed(candidate, known, gang=self._gang)
        reason = reason or await asyncio.to_thread(self._short, candidate, known)
        return Problem(f"{candidate.name} may not be whole", reason, IF_WHOLE) if reason is not None else None

    def _short(self, candidate: Candidate, known: History) -> str | None:
        written = {identity.inode for one in known.before for _, identity in one.files}
        for name, sizes in shortened(candidate, known):
            path, again = self.root / name, dict(candidate.files)[name].inode in written
            if not check(path).certain and (again or not moved_in(path)):
                return f"{sizes}, and its format cannot tell whether it is whole"
        return None

    def _flaw(self, candidate: Candidate) -> str | None:
        names = [name for name, _ in candidate.files]
        for name in names:
            reason = defect(self.root / name)
            if reason is not None:
                return f"{name}: {reason}"
        return missing_shards(self.root, names)
