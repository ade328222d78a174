"""Finds checkpoints that have become whole since the last look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from podferry.contract.errors import Problem
from podferry.sidecar.complete import Candidate, candidates, flaw, missing_shards, quiet_at
from podferry.sidecar.settings import CheckpointSettings
from podferry.sidecar.snapshot import Tracker, scan
from podferry.sidecar.watch import Watch

IDLE = 3600.0
"""Seconds to wait where nothing is due; the watch cuts it to its own interval."""


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
            Oldest first, by the time of their last change.
        """
        now = self._monotonic()
        found = await asyncio.to_thread(scan, self.root)
        self._tracker.update(found, closed, now)
        self.present = candidates(found)
        self.waiting = {}
        self._due = IDLE
        fresh = [candidate for name, candidate in self.present.items() if handled.get(name) != candidate]
        whole = [candidate for candidate in fresh if await self._whole(candidate, now, final=final)]
        return sorted(whole, key=lambda candidate: max(identity.mtime_ns for _, identity in candidate.files))

    async def _whole(self, candidate: Candidate, now: float, *, final: bool) -> bool:
        seen = [self._tracker.files[name] for name, _ in candidate.files]
        ready = quiet_at(seen, self._settings.settle, self._settings.settle_unseen)
        if ready > now and not final:
            self._due = min(self._due, ready - now)
            self.waiting[candidate.name] = Problem(f"{candidate.name} is still being written")
            return False
        reason = await asyncio.to_thread(self._flaw, candidate)
        if reason is not None:
            self.waiting[candidate.name] = Problem(f"{candidate.name} is not whole", reason)
        return reason is None

    def _flaw(self, candidate: Candidate) -> str | None:
        names = [name for name, _ in candidate.files]
        for name in names:
            reason = flaw(self.root / name)
            if reason is not None:
                return f"{name}: {reason}"
        return missing_shards(self.root, names)
