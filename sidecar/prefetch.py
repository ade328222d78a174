"""Carries out a prefetch plan: many requests at once, bounded bytes in flight, each file in when whole."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from podferry.contract.errors import Corrupt, Refused, TemporaryError
from podferry.contract.quantity import format_bytes
from podferry.sidecar.plan import Piece, PrefetchPlan
from podferry.sidecar.settings import PrefetchSettings
from podferry.sidecar.stage import Stage
from podferry.sidecar.tasks import all_of, attempts
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
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes are free; more than the total counts as the total."""
        count = min(count, self._total)
        if not self._queue and count <= self._free:
            self._free -= count
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # granted at the same moment
                self._free += count
            self._grant()
            raise

    def give(self, count: int) -> None:
        """Give bytes back."""
        self._free += min(count, self._total)
        self._grant()

    def _grant(self) -> None:
        while self._queue:
            count, turn = self._queue[0]
            if not turn.cancelled():
                if count > self._free:
                    return
                self._free -= count
                turn.set_result(None)
            self._queue.popleft()


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
        """Fetch everything; the stage is whole on return. A failure stops everything and leaves no half file.

        Raises:
            Changed, NotFound, Corrupt: An object is not what was listed; it is named.
            TemporaryError: The store did not answer, after all attempts.
            Refused: The volume was full, or a file could not be written.
        """
        requests = self._plan.requests()
        try:
            await all_of(self._work(requests) for _ in range(self._settings.in_flight))
        finally:
            self._stage.finish()

    async def _work(self, requests: Iterator[Piece]) -> None:
        for piece in requests:
            await self._budget.take(piece.length)
            try:
                await self._piece(piece)
            finally:
                self._budget.give(piece.length)

    async def _piece(self, piece: Piece) -> None:
        entry = self._plan.files[piece.file]
        data = await self._fetch(piece) if piece.length else memoryview(b"")
        if len(data) != piece.length:
            measured = f"{len(data)} bytes from {piece.start}, {piece.length} were asked for"
            raise Corrupt.of(f"the store sent a wrong length of {entry.name}", measured)
        try:
            whole = await self._store(piece, data)
        except OSError as error:
            raise self._unwritten(entry.name, error) from error
        if whole:
            self._progress(1, entry.size)

    async def _store(self, piece: Piece, data: memoryview) -> bool:
        """Write a piece; whether its file is whole and has its name now."""
        entry = self._plan.files[piece.file]
        small = piece.length < IN_A_THREAD
        if small and self._plan.pieces[piece.file] == 1:
            self._stage.put(piece.file, data, entry)
            return True
        if piece.file not in self._growing:
            self._growing[piece.file] = self._stage.grow(piece.file)
        path = self._growing[piece.file]
        if small:
            self._stage.write(path, data, piece.start)
        else:
            await asyncio.to_thread(self._stage.write, path, data, piece.start)
        self._left[piece.file] -= 1
        if self._left[piece.file]:
            return False
        self._stage.admit(self._growing.pop(piece.file), entry)
        return True

    async def _fetch(self, piece: Piece) -> memoryview:
        entry = self._plan.files[piece.file]
        try:
            return await self._lane.fetch(entry, piece.start, piece.length)
        except TemporaryError as error:
            failure: TemporaryError | None = error
        # The machinery of retrying costs as much as a small file: only those that failed pay for it.
        async for attempt in attempts(self._settings.attempts):
            with attempt:
                if failure is not None:
                    first, failure = failure, None
                    raise first
                return await self._lane.fetch(entry, piece.start, piece.length)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _unwritten(self, name: str, error: OSError) -> Refused:
        if error.errno != errno.ENOSPC:
            remedy = "Check the volume and its permissions"
            return Refused.of(f"{name} cannot be written to the stage", str(error), remedy)
        left = os.statvfs(self._stage.root)
        free = f"{format_bytes(left.f_bavail * left.f_frsize)} and {left.f_favail:,} inodes are free"
        what = f"the volume was full while {name} was being written: somebody else writes there"
        return Refused.of(what, free, "Give it a volume of its own, or a larger one")
