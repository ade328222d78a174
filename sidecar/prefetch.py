"""Carries out a prefetch plan: many requests at once, bounded bytes in flight, each file in when whole."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import stamina

from podferry.contract.errors import Corrupt, Refused, TemporaryError
from podferry.contract.quantity import format_bytes
from podferry.sidecar.plan import Piece, PrefetchPlan
from podferry.sidecar.settings import PrefetchSettings
from podferry.sidecar.stage import Stage
from podferry.sidecar.tasks import all_of
from podferry.storage.lane import Lane

Progress = Callable[[int, int], None]
"""Is told (files, bytes) that have become whole."""

IN_A_THREAD = 1 << 20
"""Bytes from which writing is handed to a thread: below, the hand-over costs more than the copy."""


class Budget:
    """Bytes that may be in flight; waiting is first come, first served."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._total = total
        self._turn = asyncio.Condition()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes are free; more than the total counts as the total."""
        count = min(count, self._total)
        async with self._turn:
            await self._turn.wait_for(lambda: self._free >= count)
            self._free -= count

    async def give(self, count: int) -> None:
        """Give bytes back."""
        async with self._turn:
            self._free += min(count, self._total)
            self._turn.notify_all()


class Prefetch:
    """One run of a plan."""

    def __init__(
        self, plan: PrefetchPlan, lane: Lane, stage: Stage, settings: PrefetchSettings, progress: Progress
    ) -> None:
        self._plan = plan
        self._lane = lane
        self._stage = stage
        self._settings = settings
        self._progress = progress
        self._budget = Budget(settings.buffer_bytes)
        self._left = list(plan.pieces)
        self._growing: dict[int, Path] = {}

    async def run(self) -> None:
        """Fetch everything; the stage is whole on return.

        Raises:
            Changed, NotFound, Corrupt: An object is not what was listed; it is named.
            TemporaryError: The store did not answer, after all attempts.
            Refused: The volume was full.
        """
        requests = self._plan.requests()
        await all_of(self._work(requests) for _ in range(self._settings.in_flight))
        self._stage.finish()

    async def _work(self, requests: Iterator[Piece]) -> None:
        for piece in requests:
            await self._budget.take(piece.length)
            try:
                await self._piece(piece)
            finally:
                await self._budget.give(piece.length)

    async def _piece(self, piece: Piece) -> None:
        entry = self._plan.files[piece.file]
        data = await self._fetch(piece) if piece.length else memoryview(b"")
        if len(data) != piece.length:
            measured = f"{len(data)} bytes from {piece.start}, {piece.length} were asked for"
            raise Corrupt.of(f"the store sent a wrong length of {entry.name}", measured)
        try:
            path = self._path(piece.file)
            if piece.length >= IN_A_THREAD:
                await asyncio.to_thread(_write_at, path, data, piece.start)
            else:
                _write_at(path, data, piece.start)
        except OSError as error:
            raise self._no_room(entry.name, error) from error
        self._left[piece.file] -= 1
        if not self._left[piece.file]:
            self._stage.admit(self._growing.pop(piece.file), entry)
            self._progress(1, entry.size)

    async def _fetch(self, piece: Piece) -> memoryview:
        entry = self._plan.files[piece.file]
        attempts = stamina.retry_context(on=TemporaryError, attempts=self._settings.attempts, timeout=None)
        async for attempt in attempts:
            with attempt:
                return await self._lane.fetch(entry, piece.start, piece.length)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _path(self, file: int) -> Path:
        """The file aside that a piece goes to, made when its first piece comes."""
        if file not in self._growing:
            single = self._plan.pieces[file] == 1
            self._growing[file] = self._stage.grow(file, 0 if single else self._plan.files[file].size)
        return self._growing[file]

    def _no_room(self, name: str, error: OSError) -> Refused:
        if error.errno != errno.ENOSPC:
            remedy = "Check the volume and its permissions"
            return Refused.of(f"{name} cannot be written to the stage", str(error), remedy)
        left = os.statvfs(self._stage.root)
        free = format_bytes(left.f_bavail * left.f_frsize)
        what = f"the volume was full while {name} was being written: somebody else writes there"
        return Refused.of(what, f"{free} are free", "Give the dataset a volume of its own")


def _write_at(path: Path, data: memoryview, start: int) -> None:
    """Write all of `data` at an offset; `os.pwrite` may write less than it was given."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        while len(data):
            written = os.pwrite(descriptor, data, start)
            data, start = data[written:], start + written
    finally:
        os.close(descriptor)
