"""Finds checkpoints that have become whole since the last look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.errors import Problem
from podferry.sidecar.complete import Candidate, candidate_name, candidates, quiet_at, unready
from podferry.sidecar.pointers import POINTERS, is_pointer, named, read_small
from podferry.sidecar.settings import CheckpointSettings
from podferry.sidecar.snapshot import Identity, Tracker, scan
from podferry.sidecar.structure import flaw, missing_shards
from podferry.sidecar.watch import Watch

IDLE = 3600.0
"""Seconds to wait where nothing is due; the watch cuts it to its own interval."""


def gather(root: Path) -> tuple[dict[str, Identity], dict[str, Candidate]]:
    """The files below `root`, and the checkpoints that they form."""
    found = scan(root)
    small = [name for name in POINTERS if name in found and is_pointer(name, found[name].size)]
    return found, candidates(found, read_small(root, small))


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer as it was while it named a checkpoint.

    Attributes:
        identity: Of the file that was read.
        text: All that stood in it.
    """

    identity: Identity
    text: bytes


def read_pointer(root: Path, name: str, identity: Identity, checkpoint: str) -> Pointer | None:
    """The pointer in that identity; None where it is another one by now, or names another checkpoint."""
    try:
        text = (root / name).read_bytes()
        found = Identity.of((root / name).stat(follow_symlinks=False))
    except OSError:
        return None
    names_it = named(text.decode(errors="replace"), {checkpoint}) is not None
    return Pointer(identity, text) if found == identity and names_it else None


def _data(candidate: Candidate) -> set[str]:
    return {name for name, identity in candidate.files if not is_pointer(name, identity.size)}


def _owned(present: Iterable[Candidate], pointers: set[str]) -> list[tuple[str, str]]:
    """(checkpoint, pointer) of each pointer that belongs to a checkpoint; one that names none is its own."""
    return [
        (candidate.name, name)
        for candidate in present
        for name, _ in candidate.files
        if name in pointers and candidate_name(name) != candidate.name
    ]


class Detector:
    """Looks at the checkpoint directory.

    Attributes:
        present: Every candidate as it lay there at the last look, whole or not, by name.
        waiting: Why each that is not whole is not, by name.
    """

    def __init__(
        self,
        root: Path,
        watch: Watch,
        settings: CheckpointSettings,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self.present: dict[str, Candidate] = {}
        self.waiting: dict[str, Problem] = {}
        self._watch = watch
        self._settings = settings
        self._monotonic = monotonic
        self._tracker = Tracker()
        self._shrunk: dict[str, float] = {}
        # By checkpoint, then by the pointer's name.
        self._pointers: dict[str, dict[str, Pointer]] = {}
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
        now = self._monotonic()
        found, present = await asyncio.to_thread(gather, self.root)
        self._tracker.update(found, closed, now)
        self._note_shrunk(present, now)
        await asyncio.to_thread(self._read_pointers, found, present, now, final)
        self._due = IDLE
        fresh = [candidate for name, candidate in present.items() if not candidate.within(handled.get(name))]
        fresh.sort(key=lambda candidate: max(identity.mtime_ns for _, identity in candidate.files))
        reasons = await self._reasons(fresh, now, final=final)
        # Both at once and only now: others read them while this look is under way.
        self.present = present
        self.waiting = {name: problem for name, problem in reasons.items() if problem is not None}
        return [self._pointed(candidate) for candidate in fresh if candidate.name not in self.waiting]

    def texts(self, candidate: Candidate) -> dict[str, bytes]:
        """What stood in those of a candidate's pointers that were read in the identity that it has."""
        read = self._pointers.get(candidate.name, {})
        return {
            name: read[name].text
            for name, identity in candidate.files
            if name in read and read[name].identity == identity
        }

    def _read_pointers(
        self, found: dict[str, Identity], present: dict[str, Candidate], now: float, final: bool
    ) -> None:
        """Remember each pointer with the checkpoint that it names: it may move on before that is pinned.

        It is read once it was closed, or has been the same since an earlier look. One that was removed is
        forgotten.
        """
        lying = {name for name in POINTERS if name in found and is_pointer(name, found[name].size)}
        self._pointers = {
            checkpoint: {name: pointer for name, pointer in held.items() if name in lying}
            for checkpoint, held in self._pointers.items()
            if checkpoint in present
        }
        for checkpoint, name in _owned(present.values(), lying):
            seen, held = self._tracker.files[name], self._pointers.setdefault(checkpoint, {})
            if (final or seen.closed or seen.since < now) and (
                name not in held or held[name].identity != seen.identity
            ):
                pointer = read_pointer(self.root, name, seen.identity, checkpoint)
                if pointer is not None:
                    held[name] = pointer

    def _pointed(self, candidate: Candidate) -> Candidate:
        """The candidate with the pointers that named it and have moved on since."""
        own, read = dict(candidate.files), self._pointers.get(candidate.name, {})
        moved = tuple((name, pointer.identity) for name, pointer in read.items() if name not in own)
        return Candidate(candidate.name, candidate.files + moved)

    async def _reasons(self, fresh: list[Candidate], now: float, *, final: bool) -> dict[str, Problem | None]:
        """Why each is not whole yet, None where it is.

        None overtakes an older one that only has to be quiet for a while longer: commits come in the order
        of the last changes, so that the newest is never followed by an older one.
        """
        reasons: dict[str, Problem | None] = {}
        older: Candidate | None = None
        for candidate in fresh:
            quiet = final or self._quiet(candidate, now)
            if older is None and not quiet:
                older = candidate
            if not quiet:
                reasons[candidate.name] = Problem(f"{candidate.name} is still being written")
            elif older is not None:
                reasons[candidate.name] = Problem(f"{candidate.name} waits for {older.name}, which is older")
            else:
                reasons[candidate.name] = await self._flawed(candidate)
        return reasons

    def _note_shrunk(self, present: dict[str, Candidate], now: float) -> None:
        """Remember since when a checkpoint has lost no more files: what is being removed looks quiet.

        A pointer that moves on to the next checkpoint takes nothing from this one.
        """
        self._shrunk = {name: since for name, since in self._shrunk.items() if name in present}
        for name, before in self.present.items():
            if name in present and _data(before) - dict(present[name].files).keys():
                self._shrunk[name] = now

    def _quiet(self, candidate: Candidate, now: float) -> bool:
        seen = [self._tracker.files[name] for name, _ in candidate.files]
        ready = quiet_at(seen, self._settings.settle, self._settings.settle_unseen)
        ready = max(ready, self._shrunk.get(candidate.name, float("-inf")) + self._settings.settle_unseen)
        if ready > now:
            self._due = min(self._due, ready - now)
        return ready <= now

    async def _flawed(self, candidate: Candidate) -> Problem | None:
        reason = unready(candidate) or await asyncio.to_thread(self._flaw, candidate)
        return Problem(f"{candidate.name} is not whole", reason) if reason is not None else None

    def _flaw(self, candidate: Candidate) -> str | None:
        names = [name for name, _ in candidate.files]
        for name in names:
            reason = flaw(self.root / name)
            if reason is not None:
                return f"{name}: {reason}"
        return missing_shards(self.root, names)
