"""Tells how far a prefetch is: in the status whenever it is asked for, and in the log every few seconds."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from podferry.contract.status import DatasetStatus
from podferry.sidecar.state.transfer_counters import Speed, TransferCounters

LOG_EVERY = 5.0
"""Seconds between two lines: a prefetch of an hour leaves 720, and a stall is seen at once."""


class ProgressLog:
    """Keeps one dataset's status true.

    Args:
        status: What is told.
        stage: The directory that is filled.
        now: A clock, seconds.

    Attributes:
        meter: What the prefetch bumps.
    """

    def __init__(self, status: DatasetStatus, stage: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.meter = status.transfer = TransferCounters()
        self._status, self._stage, self._now = status, stage, now
        self._kept = (0, 0)
        self._speed = Speed()
        self._began: float | None = None
        self._spent = 0.0

    def begin(self) -> None:
        """Bytes are on their way, or soon will be."""
        if self._began is None:
            self._began = self._now()

    def pause(self) -> None:
        """No more bytes are on their way for now."""
        if self._began is not None:
            self._spent += self._now() - self._began
            self._began = None

    def planned(self, files: int, count: int) -> None:
        """So many files and bytes are there already; `files` and `bytes` of the status are the plan's.

        The meter goes on counting where a prefetch is tried again: what it has, the plan finds there.
        """
        self._status.files_done, self._status.bytes_done = files, count
        self._kept = (files - self.meter.files, count - (self.meter.bytes - self.meter.discarded))

    def refresh(self) -> None:
        """Bring the status up to date: as far as it is, how fast, how full the volume is."""
        with suppress(OSError):  # there is no stage yet, or no more
            volume = os.statvfs(self._stage)
            self._status.volume_bytes = volume.f_blocks * volume.f_frsize
            self._status.volume_free = volume.f_bavail * volume.f_frsize
        if self._began is not None and self._status.files:
            self._advance(self._now())

    def _advance(self, now: float) -> None:
        status, meter = self._status, self.meter
        files, count = self._kept
        status.files_done = files + meter.files
        status.bytes_done = min(count + meter.bytes - meter.discarded, status.bytes)
        status.rate = self._speed.rate(now, meter.bytes)
        left = status.bytes - status.bytes_done
        status.eta = left / status.rate if status.rate else None

    @asynccontextmanager
    async def telling(self, *, lines: bool = True) -> AsyncIterator[None]:
        """For the time of a prefetch, with the figures of the whole at its end.

        Args:
            lines: Log a line every few seconds.
        """
        self.begin()
        self.refresh()
        task = asyncio.create_task(self._tell()) if lines else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
            self._end()

    def _end(self) -> None:
        """The rate is from here on that of the whole prefetch."""
        self.refresh()
        self.pause()
        self._status.seconds = self._spent
        self._status.rate = self.meter.bytes / self._spent if self._spent else 0.0
        self._status.eta = None

    async def _tell(self) -> None:
        await asyncio.sleep(LOG_EVERY)
        import structlog  # noqa: PLC0415 - loaded here: where it takes no time nothing is logged

        log = structlog.get_logger(__name__)
        while True:
            self.refresh()
            log.info("prefetching", **line(self._status))
            await asyncio.sleep(LOG_EVERY)


def line(status: DatasetStatus) -> dict[str, str | float | None]:
    """A status as the fields of one line of a log: bytes, and seconds."""
    named = {"dataset": status.name} if status.name else {}
    why = {"why_handed_over": status.transfer.why} if status.transfer.why else {}
    return {
        **named,
        "files": status.files_done,
        "of_files": status.files,
        "bytes": status.bytes_done,
        "of_bytes": status.bytes,
        "bytes_per_second": round(status.rate),
        "eta": None if status.eta is None else round(status.eta, 1),
        "retries": status.transfer.retries,
        "handed_over": status.transfer.handed_over,
        "connections": status.transfer.connections,
        **why,
    }
