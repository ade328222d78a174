"""Downloads small files while a long listing is in progress, if whatever it lists will fit.

If a holder has the dataset, it is copied from there meanwhile: most files will not have changed.

The files are stored under numbers in a partial directory until the list is complete, compared with the
reference and checked. Then they get their names, and the rest is planned. Nothing depends on them: a file
that fails here is fetched as planned, and reports its error then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from podferry.contract.dataset_volume import ListedSize, dataset_volume_of, unknown_size
from podferry.contract.manifest import Entry
from podferry.contract.spec import DatasetSpec, Unpack
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.early_jobs import EntryJobs, EntryQueue
from podferry.sidecar.dataset.fit_check import surely_fits
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.fetch.sinks import ChunkSink, ObjectJob
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity, measure
from podferry.sidecar.state.progress_log import ProgressLog
from podferry.storage.http.buffer_pool import BUFFER_BYTES
from podferry.storage.http.pool import ConnectionPool
from podferry.storage.store import ConfirmingStore, Store

ENTRIES_PER_PAGE = 1000
"""Entries that most stores list in one response."""
MIN_ENTRIES = 3 * ENTRIES_PER_PAGE
"""Listed entries before downloads start: three requests, which take about as long as starting them."""
FAST_LISTING_RATE = 20_000
"""Entries per second from which the listing alone keeps this process busy: it can read 50,000."""
FINISH_SECONDS = 2.0
"""Time for open requests after the listing ends."""
ADOPT_BATCH = 500
"""Files renamed before other tasks get a turn: some 20 ms."""


class ListingOverlap:
    """Fetches small files during a listing.

    1. `on_entry` for each listed entry; downloads start if the listing is slow. Or `copy`, of a holder.
    2. `finish` when the listing ends or fails; after a failure, `on_entry` again.
    3. `adopt`, once the staging directory is claimed.
    4. `keep` when the fetch starts, or `discard`.

    Args:
        staging: The staging directory, still empty.
        directory: A partial directory in it.
        queue: What may be fetched.
        settings: How to fetch.
        progress: Counts what is fetched.
    """

    def __init__(
        self,
        staging: StagingDir,
        directory: Path,
        queue: EntryQueue,
        settings: PrefetchSettings,
        progress: ProgressLog,
    ) -> None:
        self._staging, self._settings, self._progress = staging, settings, progress
        partial = StageWriter(directory, staging.file_mode)
        self._sink = ChunkSink(partial, settings.verify, False, self._on_file, lambda job, written: None)
        self._queue = queue
        self._fetched: dict[str, tuple[Entry, str]] = {}
        self._early: frozenset[str] = frozenset()
        self._adopted = False
        self._listed, self._started_at = 0, time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def on_entry(self, store: Store, entry: Entry) -> None:
        """Add a listed entry; one may come twice, and all do if the listing is restarted."""
        self._queue.add(entry)
        self._listed += 1
        is_due = self._listed > MIN_ENTRIES and self._listed % ENTRIES_PER_PAGE == 1 and self._task is None
        is_slow = self._listed < FAST_LISTING_RATE * (time.monotonic() - self._started_at)
        # What has to be confirmed is fetched as planned: such stores list everything at once in any case.
        if is_due and is_slow and not isinstance(store, ConfirmingStore):
            self._start(FetchSource(store))

    def copy(self, source: FetchSource, entries: Sequence[Entry]) -> None:
        """Fetch what a holder has, if the source needs more than one request to list as many entries."""
        if len(entries) > ENTRIES_PER_PAGE and self._task is None:
            for entry in entries:
                self._queue.add(entry)
            self._start(source)

    def _start(self, source: FetchSource) -> None:
        builder = source.store.request_builder
        if builder is not None:
            self._task = asyncio.create_task(self._run(EntryJobs(source, builder, self._queue, self._sink)))

    async def finish(self, seconds: float | None = None) -> None:
        """Start no more requests, and wait at most `seconds`, or `FINISH_SECONDS`, for the open ones."""
        self._queue.close()
        self._listed, self._started_at = 0, time.monotonic()
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task}, timeout=FINISH_SECONDS if seconds is None else seconds)
        finally:  # a caller that is cancelled here leaves no task running
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    async def adopt(self, entries: Sequence[Entry]) -> frozenset[str]:
        """Rename the files that match the final list to their names; these names."""
        adopted = set(self._early)
        for start in range(0, len(entries) if self._fetched else 0, ADOPT_BATCH):
            adopted.update(filter(None, map(self._adopt, entries[start : start + ADOPT_BATCH])))
            await asyncio.sleep(0)
        self._staging.remove_overlap_dir()
        self._early, self._adopted = frozenset(adopted), True
        return self._early

    def _adopt(self, entry: Entry) -> str | None:
        fetched, number = self._fetched.pop(entry.name, (None, ""))
        if fetched != entry:
            return None
        try:
            self._staging.rename_in(f"{self._sink.stage.root}/{number}", entry.name)
        except OSError:  # the fetch meets the same error, and reports it
            return None
        return entry.name

    def keep(self) -> None:
        """The fetch starts: adopted files stay from now on."""
        self._early = frozenset()

    def discard(self) -> None:
        """Remove all files, unless `keep` was called."""
        self._staging.delete(self._early)
        if not self._adopted:  # nothing is claimed yet, so the partial directory holds nothing else
            self._staging.remove_partials()

    async def _run(self, jobs: EntryJobs) -> None:
        max_connections = max(1, self._settings.buffer_bytes // BUFFER_BYTES)
        counters = self._progress.counters
        handed_over = counters.handed_over
        self._progress.start()
        try:
            await ConnectionPool(jobs, max_connections, counters).run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest is fetched as planned
            counters.why = f"the download during the listing stopped: {error!r}"
        finally:
            counters.handed_over = handed_over  # nothing fell back: the fetch counts what does
            self._progress.pause()

    def _on_file(self, job: ObjectJob) -> None:
        self._fetched[job.entry.name] = job.entry, job.file.name
        self._progress.counters.files += 1


def make_overlap(
    spec: DatasetSpec,
    selection: Selection,
    staging: StagingDir,
    settings: PrefetchSettings,
    progress: ProgressLog,
    listed: ListedSize | None = None,
) -> ListingOverlap | None:
    """An overlap for a dataset that surely fits, will be whole, and is not unpacked; otherwise None.

    Args:
        spec: The dataset, which shares its space with no other.
        selection: Its globs.
        staging: See `ListingOverlap`.
        settings: See there.
        progress: See there.
        listed: Its size at a holder.
    """
    if spec.shard or spec.unpack is Unpack.ALWAYS or any(unknown_size(spec, listed)):
        return None
    volume, capacity = dataset_volume_of(spec, listed), measure(staging.root)
    if not surely_fits(volume, capacity, settings.buffer_bytes) or _may_lack_inodes(capacity, listed):
        return None
    directory = staging.make_overlap_dir()
    if directory is None:
        return None
    queue = EntryQueue(selection, volume.bytes, settings.range_bytes, capacity.page_bytes)
    return ListingOverlap(staging, directory, queue, settings, progress)


def _may_lack_inodes(capacity: Capacity, listed: ListedSize | None) -> bool:
    """Whether files and as many directories may be too many: the check of the plan gives the numbers."""
    free = capacity.volume_files
    return listed is not None and free is not None and 2 * listed.files > free
