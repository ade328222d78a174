"""Ranges of one file that are written as their bytes arrive: nothing holds a range in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from podferry.sidecar.fetch.sinks import Job, RangeJob
from podferry.sidecar.staging.stage_writer import StageWriter


def range_runs(jobs: Iterable[Job], max_bytes: int) -> Iterator[list[Job]]:
    """Jobs, with consecutive ranges of a file together up to a length; at least one job in each."""
    run: list[Job] = []
    for job in jobs:
        if run and not _continues(run, job, max_bytes):
            yield run
            run = []
        run.append(job)
    if run:
        yield run


def _continues(run: Sequence[Job], job: Job, max_bytes: int) -> bool:
    last = run[-1]
    return (
        is_streamed(last)
        and is_streamed(job)
        and (last.number, last.start + last.length) == (job.number, job.start)
        and job.start + job.length - run[0].start <= max_bytes
    )


def is_streamed(job: Job) -> bool:
    """Whether a job's bytes need not be seen in one piece: no checksum is computed of them."""
    return isinstance(job, RangeJob) and job.kind is None


class RangeStream:
    """Writes consecutive ranges of a file. Calls: 1. `receive`, from any thread, 2. `end`, 3. `close`.

    Each is recorded once it is complete, so that a later start does not fetch it again; the last one at the
    `end`, when the store has said that the file is still the listed one: before that none is published.

    Args:
        run: The ranges.
        stage: Where they are written.
        record: Called with each range that is complete, on the event loop.
    """

    def __init__(
        self, run: Sequence[RangeJob], stage: StageWriter, record: Callable[[RangeJob], None]
    ) -> None:
        self._first, self._unrecorded = run[0], deque(run)
        self._stage, self._record = stage, record
        self._loop = asyncio.get_running_loop()
        self._arrived = self._first.start
        self._error: Exception | None = None
        self._closed = False

    def receive(self, data: memoryview, position: int) -> None:
        """See `podferry.storage.store.Receive`. Raises `Refused` if the bytes cannot be written."""
        if self._closed:
            raise InterruptedError("the fetch has ended")
        start = self._first.start + position
        try:
            self._stage.write(self._first.path, data, start)
        except OSError as error:
            raise self._stage.write_error(self._first.entry.name, error) from error
        before, self._arrived = self._arrived, start + len(data)
        if self._arrived // self._first.length > before // self._first.length:
            self._loop.call_soon_threadsafe(self._record_arrived)

    def _record_arrived(self) -> None:
        try:
            while len(self._unrecorded) > 1 and _end(self._unrecorded[0]) <= self._arrived:
                self._record(self._unrecorded.popleft())
        except Exception as error:  # noqa: BLE001 - `end` raises it; the loop would only log it
            self._error = error

    def end(self) -> None:
        """Record what is left. Raises what a record raised."""
        if self._error is not None:
            raise self._error
        while self._unrecorded:
            self._record(self._unrecorded.popleft())

    def close(self) -> None:
        """Write nothing more, whatever still arrives in a thread that cannot be cancelled."""
        self._closed = True


def _end(job: RangeJob) -> int:
    return job.start + job.length
