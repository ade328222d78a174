"""Progress of a prefetch: in the status whenever it is read, and in the log every few seconds."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from podferry.contract.status import DatasetStatus
from podferry.sidecar.state.transfer_counters import RateMeter, TransferCounters

LOG_SECONDS = 5.0
"""Between two log lines: a prefetch of an hour logs 720, and a stall shows at once."""


class ProgressLog:
    """Keeps a dataset's status current while it is staged; the prefetch increments `counters`.

    Attributes:
        directory: Where it is, in the volume whose free space the status has.
    """

    def __init__(
        self, status: DatasetStatus, directory: Path, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.counters = status.transfer = TransferCounters()
        self._status, self.directory, self._now = status, directory, now
        self._kept_files = self._kept_bytes = 0
        self._rate_meter = RateMeter()
        self._started_at: float | None = None
        self._active_seconds = 0.0

    def start(self) -> None:
        """Bytes are arriving, or will soon."""
        if self._started_at is None:
            self._started_at = self._now()

    def pause(self) -> None:
        """No more bytes are arriving for now."""
        if self._started_at is not None:
            self._active_seconds += self._now() - self._started_at
            self._started_at = None

    def planned(self, done_files: int, done_bytes: int) -> None:
        """Set what exists already; the status has the totals of the plan.

        Counters keep counting when a prefetch is retried, and the plan finds what they have counted.
        """
        self._status.files_done, self._status.bytes_done = done_files, done_bytes
        self._kept_files = done_files - self.counters.files
        self._kept_bytes = done_bytes - (self.counters.bytes - self.counters.discarded)

    def refresh(self) -> None:
        """Update the status: progress, rate, and how full the volume is."""
        with suppress(OSError):  # the directory does not exist yet, or no longer
            volume = os.statvfs(self.directory)
            self._status.volume_bytes = volume.f_blocks * volume.f_frsize
            self._status.volume_free = volume.f_bavail * volume.f_frsize
        if self._started_at is not None and self._status.files:
            self._update_progress(self._now())

    def _update_progress(self, now: float) -> None:
        status, counters = self._status, self.counters
        status.files_done = self._kept_files + counters.files
        status.bytes_done = min(self._kept_bytes + counters.bytes - counters.discarded, status.bytes)
        status.rate = self._rate_meter.rate(now, counters.bytes)
        status.eta = (status.bytes - status.bytes_done) / status.rate if status.rate else None

    @asynccontextmanager
    async def reporting(self, *, log_progress: bool = True) -> AsyncIterator[None]:
        """Update the status during a prefetch; at its end, the rate is the average.

        With `log_progress` it also logs a line every few seconds.
        """
        self.start()
        self.refresh()
        task = asyncio.create_task(self._log()) if log_progress else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
            self.refresh()
            self.pause()
            self._status.seconds = seconds = self._active_seconds
            self._status.rate, self._status.eta = self.counters.bytes / seconds if seconds else 0.0, None

    async def _log(self) -> None:
        await asyncio.sleep(LOG_SECONDS)
        import structlog  # noqa: PLC0415 - a short prefetch logs nothing and need not load it

        log = structlog.get_logger(__name__)
        while True:
            self.refresh()
            log.info("prefetching", **log_fields(self._status))
            await asyncio.sleep(LOG_SECONDS)


def log_fields(status: DatasetStatus) -> dict[str, str | float | None]:
    """A status as the fields of a log line: bytes, and seconds."""
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
