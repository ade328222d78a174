"""Files of a long listing that come while it goes on, where there is room for them whatever else is listed.

They lie aside, under numbers, until the list is complete, compared with the reference and checked: then they
get their names, and what is left to fetch is planned. Nothing depends on them: what does not come ahead, for
whatever reason, comes as planned, and tells the reason then.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from podferry.contract.manifest import Entry
from podferry.contract.selection import select
from podferry.contract.tmpfs_cost import PAGE_BYTES, charged_bytes
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.fetch.job_queue import BATCH_JOBS, JobQueue
from podferry.sidecar.fetch.sinks import ChunkSink, Job, ObjectJob
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.progress_log import ProgressLog
from podferry.storage.http.connection import BUFFER_BYTES
from podferry.storage.http.pool import ConnectionPool
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.store import Store

ENTRIES_PER_PAGE = 1000
"""Entries that most stores list in one answer."""
FIRST = 3 * ENTRIES_PER_PAGE
"""Entries that are listed before it begins: three requests, which take about as long as beginning does."""
QUICK = 20_000
"""Entries a second from which a listing keeps this process busy by itself: it can read 50,000."""
LAST = 2.0
"""Seconds that what is on its way at the end of the listing may still take."""
AT_A_TIME = 500
"""Files that get their names in a row: some 20 ms, in which nobody else's turn comes."""


class OverlapBudget(msgspec.Struct, frozen=True):
    """What may come ahead.

    Attributes:
        selection: The dataset's.
        room: Bytes, as they are charged.
        page_bytes: That a file takes at least.
    """

    selection: Selection
    room: int
    page_bytes: int = PAGE_BYTES


class ListingOverlap:
    """Fetches small files beside the listing.

    Args:
        stage: What they are for; nothing lies in it.
        place: A directory of it, aside.
        allowed: What may come.
        settings: How.
        report: Is told what comes.
    """

    def __init__(
        self,
        stage: StagingDir,
        place: Path,
        allowed: OverlapBudget,
        settings: PrefetchSettings,
        report: ProgressLog,
    ) -> None:
        self._stage, self._settings, self._report = stage, settings, report
        aside = StagingDir(place, place, stage.file_mode)
        self._landing = ChunkSink(aside, settings.verify, False, self._landed, lambda job, came: None)
        self._queue = _Queue(allowed, settings.range_bytes)
        self._came: dict[str, ObjectJob] = {}
        self._listed, self._since = 0, time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def listed(self, store: Store, entry: Entry) -> None:
        """Take note of an entry; one may come twice, and when the listing is begun again all do."""
        self._queue.append(entry)
        self._listed += 1
        if (
            self._task is None
            and self._listed > FIRST
            and self._listed % ENTRIES_PER_PAGE == 1
            and self._is_slow
        ):
            requests = store.request_builder
            if requests is not None:
                self._task = asyncio.create_task(self._run(requests))

    @property
    def _is_slow(self) -> bool:
        return self._listed < QUICK * (time.monotonic() - self._since)

    async def end(self, patience: float = LAST) -> None:
        """The listing is over, or has failed: what has not begun to come is left to the plan.

        Args:
            patience: Seconds for what has.
        """
        self._queue.end()
        self._listed, self._since = 0, time.monotonic()
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task}, timeout=patience)
        finally:  # whoever is cancelled here leaves nothing at work
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    async def adopt(self, entries: Sequence[Entry]) -> frozenset[str]:
        """Give those files their names that are wanted as they came; the names. The stage is claimed."""
        adopted = set[str]()
        for start in range(0, len(entries) if self._came else 0, AT_A_TIME):
            adopted.update(filter(None, map(self._adopted, entries[start : start + AT_A_TIME])))
            await asyncio.sleep(0)
        self._stage.drop_ahead()
        return frozenset(adopted)

    def _adopted(self, entry: Entry) -> str | None:
        job = self._came.pop(entry.name, None)
        if job is None or job.entry != entry:
            return None
        try:
            self._stage.move_in(f"{self._landing.stage.root}/{job.file.name}", entry.name)
        except OSError:  # the plan meets the same, and tells it
            return None
        return entry.name

    async def _run(self, requests: RequestBuilder) -> None:
        most = max(1, self._settings.buffer_bytes // BUFFER_BYTES)
        meter = self._report.counters
        handed_over = meter.handed_over
        self._report.start()
        try:
            await ConnectionPool(_Waiting(requests, self._queue, self._landing), most, meter).run()
        except Exception as error:  # noqa: BLE001 - whatever it is, what is left comes as planned
            meter.why = f"nothing more came beside the listing: {error!r}"
        finally:
            meter.handed_over = handed_over  # to nobody: the plan counts what it hands over
            self._report.pause()

    def _landed(self, job: ObjectJob) -> None:
        self._came[job.entry.name] = job
        self._report.counters.files += 1


class _Queue:
    """Entries that are listed, and those of them that are to come."""

    def __init__(self, allowed: OverlapBudget, largest: int) -> None:
        self._allowed, self._left, self._largest = allowed, allowed.room, largest
        self._listed: deque[Entry] = deque()
        self._taken = set[str]()
        self._more = asyncio.Event()
        self._ended = False

    def append(self, entry: Entry) -> None:
        self._ended = False
        self._listed.append(entry)
        if not self._more.is_set():
            self._more.set()

    def end(self) -> None:
        self._ended = True
        self._listed.clear()
        self._more.set()

    async def take(self) -> list[tuple[int, Entry]]:
        """The next ones, numbered; none at the end."""
        while not self._ended and self._left > 0:
            page = [self._listed.popleft() for _ in range(min(BATCH_JOBS, len(self._listed)))]
            if taken := [(len(self._taken), entry) for entry in self._wanted(page) if self._takes(entry)]:
                return taken
            if not page:
                self._more.clear()
                await self._more.wait()
        return []

    def _wanted(self, page: Sequence[Entry]) -> Sequence[Entry]:
        globs = self._allowed.selection
        return select(page, globs.include, globs.exclude) if globs.include or globs.exclude else page

    def _takes(self, entry: Entry) -> bool:
        """Whether it is to come: what is empty needs no request, what is large is shared among processes."""
        if not 0 < entry.size <= self._largest or entry.name in self._taken:
            return False
        self._left -= charged_bytes([entry.size], self._allowed.page_bytes)
        if self._left < 0:
            return False
        self._taken.add(entry.name)
        return True


class _Waiting(JobQueue):
    """Lots of what is listed, as it is listed."""

    def __init__(self, requests: RequestBuilder, queue: _Queue, landing: ChunkSink) -> None:
        super().__init__(requests, iter(()), lambda job, why: None)
        self._queue, self._landing = queue, landing

    async def next_batch(self) -> Sequence[Job]:
        """See `JobSource.next_batch`."""
        while entries := await self._queue.take():
            jobs = [
                ObjectJob(number, entry, Entry(str(number), entry.size, entry.tag), self._landing)
                for number, entry in entries
            ]
            if await self.prepared(jobs):
                return jobs
        return ()
