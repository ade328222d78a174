"""Small files that arrive together, in one response: a request for each would cost more than its bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from podferry.contract.bundle import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.sinks import Job, ObjectJob
from podferry.storage.http.connection import GetJob
from podferry.storage.http.response_head import ResponseHead, UnexpectedResponse
from podferry.storage.store import BundlingStore

NUMBER_BITS = 32
"""Of a file's number in the plan, below its position at the store: one integer of 8 bytes for each file."""


class BundleJob:
    """Fetches some small files in one request. See `podferry.storage.http.connection.GetJob`.

    Args:
        entry: What the request is for.
        files: The jobs of the files, in the order of their bytes. Those that are written leave it.
    """

    __slots__ = ("entry", "files", "length", "sent_at")
    start = 0
    head_only = False

    def __init__(self, entry: Entry, files: Iterable[ObjectJob]) -> None:
        self.entry, self.length, self.files, self.sent_at = entry, entry.size, list(files), 0.0

    def receive_head(self, head: ResponseHead) -> None:
        """See `GetJob.receive_head`; the checksums of the files are known."""

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `GetJob.receive_body`: all files at once, for a bundle fits into the buffer."""
        if len(data) < self.length:
            raise UnexpectedResponse("a head that leaves no room for its bundle")
        written = start = 0
        try:
            for job in self.files:
                job.receive_body(data[start : start + job.length], 0)
                start += job.length
                written += 1
        finally:
            del self.files[:written]


def single_jobs(job: Job | BundleJob) -> Sequence[Job]:
    """The jobs of the files that a job has not written."""
    return job.files if isinstance(job, BundleJob) else (job,)


def failed_name(job: GetJob | None) -> str:
    """The file that a job could not write: of a bundle, the first that is left."""
    if isinstance(job, BundleJob):
        return next((one.entry.name for one in job.files), "")
    return "" if job is None else job.entry.name


class BundledFiles:
    """The files of a plan that are to be fetched in bundles: in the store's order, which is not the plan's.

    Args:
        store: Where they are.
    """

    def __init__(self, store: BundlingStore) -> None:
        self._store, self._keys = store, array("Q")

    def add(self, number: int, entry: Entry) -> bool:
        """Take a file, by its number in the plan; False if it needs a request of its own."""
        position = self._store.position_of(entry) if entry.size <= MAX_FILE_BYTES else None
        if position is not None:
            self._keys.append(position << NUMBER_BITS | number)
        return position is not None

    def jobs(self, make_job: Callable[[int], ObjectJob]) -> Iterator[BundleJob]:
        """The bundles; `make_job` makes a file's job from its number."""
        keys = array("Q", sorted(self._keys))
        files: list[ObjectJob] = []
        positions: list[int] = []
        size = 0
        for key in keys:
            job = make_job(key & (1 << NUMBER_BITS) - 1)
            if files and (size + job.length > MAX_BYTES or len(files) == MAX_FILES):
                yield BundleJob(self._store.bundle_of(positions, size), files)
                files, positions, size = [], [], 0
            files.append(job)
            positions.append(key >> NUMBER_BITS)
            size += job.length
        if files:
            yield BundleJob(self._store.bundle_of(positions, size), files)
