"""The checkpoints that are held and on their way, in the order in which they became whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint


class UploadQueue:
    """A queue of pins; a pin's number is its age.

    Attributes:
        newest_first: Whether the newest goes next: a pod that ends has no time for all of them.
    """

    def __init__(self, held: Iterable[HeldCheckpoint], *, newest_first: bool = False) -> None:
        self.newest_first = newest_first
        self._waiting = sorted(held, key=lambda pinned: pinned.number)
        self._sending: HeldCheckpoint | None = None
        self._filled = asyncio.Event()

    def held(self) -> list[HeldCheckpoint]:
        """All of them, in the order in which they will go out."""
        waiting = self._waiting[::-1] if self.newest_first else self._waiting
        return [*([self._sending] if self._sending else []), *waiting]

    def add(self, pinned: HeldCheckpoint) -> list[HeldCheckpoint]:
        """Take the newest in; the waiting older versions of the same name, which it replaces."""
        replaced = [held for held in self._waiting if held.candidate.name == pinned.candidate.name]
        self._waiting = [held for held in self._waiting if held not in replaced] + [pinned]
        self._filled.set()
        return replaced

    async def take(self) -> HeldCheckpoint:
        """The next to be sent; `done` or `put_back` follows."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        self._sending = self._waiting.pop(-1 if self.newest_first else 0)
        return self._sending

    def done(self) -> None:
        """What was taken is on its way no more."""
        self._sending = None

    def put_back(self) -> None:
        """What was taken must be sent again."""
        assert self._sending is not None  # noqa: S101 - `take` comes first
        self._waiting = sorted([*self._waiting, self._sending], key=lambda pinned: pinned.number)
        self._sending = None

    def waits(self, name: str) -> bool:
        """Whether a version of a checkpoint waits that is newer than the one that was taken."""
        return any(held.candidate.name == name for held in self._waiting)

    def overtaken(self) -> bool:
        """Whether what was taken should let another one go first."""
        newest = max((held.number for held in self._waiting), default=0)
        return self.newest_first and self._sending is not None and newest > self._sending.number

    def older_than(self, pinned: HeldCheckpoint) -> int:
        """How many that wait are older."""
        return sum(held.number < pinned.number for held in self._waiting)
