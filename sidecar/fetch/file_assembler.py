"""Turns a plan into jobs, and the ranges that they write into published files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import filterfalse

from podferry.contract.manifest import Entry
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.bundles import BundledFiles, BundleJob
from podferry.sidecar.fetch.confirmation import Confirmation
from podferry.sidecar.fetch.fallback_client import MIN_THREAD_BYTES
from podferry.sidecar.fetch.multirange_file import RangedFile
from podferry.sidecar.fetch.partial_file import PartialFile, WrittenRange
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.fetch.shared_jobs import SharedJobs
from podferry.sidecar.fetch.sinks import ChunkSink, HeadJob, Job, ObjectJob, RangeJob
from podferry.sidecar.fetch.source import FetchSource, Progress
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc64
from podferry.storage.store import BundlingStore, ConfirmingStore


class FileAssembler:
    """The files of one plan.

    Args:
        plan, source, stage: What to fetch, where from and where to.
        settings: Whether to compare files with the checksums that their store states; attempts.
        progress, counters: Updated as files and bytes arrive.
        repair: Called with a complete file whose checksum does not match.

    Attributes:
        sink: Where the jobs write.
        jobs: The plan's jobs, without ranges that an earlier start has written; small files in bundles if the
            store has them.
        bundled: The files that arrive in bundles; None if the store has no bundles.
        confirmation: Of complete files that may be a mixture of two versions; None if the store sends none.
    """

    def __init__(
        self,
        plan: FetchPlan,
        source: FetchSource,
        stage: StageWriter,
        settings: PrefetchSettings,
        progress: Progress,
        counters: TransferCounters,
        repair: Callable[[RangedFile], None],
    ) -> None:
        self._plan, self._source, self._stage = plan, source, stage
        self._progress, self._counters, self._repair = progress, counters, repair
        confirming = source.store if isinstance(source.store, ConfirmingStore) else None
        self.confirmation = None if confirming is None else Confirmation(confirming, stage, settings)
        builder, verify = source.store.request_builder, settings.verify
        ranges_have_checksum = verify and builder is not None and not builder.checksum_needs_head
        written = self._file_written, self._range_written
        computes = stage.checksums is not None
        self.sink = ChunkSink(stage, verify, ranges_have_checksum, *written, computes, confirming is not None)
        self._ranged: dict[int, RangedFile] = {}
        self._checksums: dict[int, Checksum] = {}
        bundling = source.store if isinstance(source.store, BundlingStore) else None
        self.bundled = None if bundling is None or builder is None else BundledFiles(bundling)
        self.jobs = SharedJobs(self._job_groups())

    def head_jobs(self) -> list[HeadJob]:
        """Jobs for the checksums of large files, if a response with a range does not state them."""
        large = [pair for pair in enumerate(self._plan.files) if self._plan.is_large(pair[0])]
        unknown = [(number, file) for number, file in large if self._source.checksum_of(file) is None]
        return [HeadJob(number, self._source.object_of(file)) for number, file in unknown]

    def expect(self, heads: list[HeadJob]) -> None:
        """Set the checksums that head jobs have fetched. Call it before the first of `jobs` is taken."""
        self._checksums = {head.number: head.checksum for head in heads if head.checksum is not None}

    def _job_groups(self) -> Iterator[Iterator[Job | BundleJob]]:
        """Those of each large file, then those of all small ones: the plan has the largest first."""
        numbers = range(len(self._plan.files))
        first_small = next(filterfalse(self._plan.is_large, numbers), len(numbers))
        yield from map(self._range_jobs, numbers[:first_small])
        yield self._small_file_jobs(numbers[first_small:])

    def _range_jobs(self, number: int) -> Iterator[RangeJob]:
        """Those of a large file, which is opened with the first one."""
        file = self._plan.files[number]
        partial = PartialFile(self._stage, file, self._plan.range_bytes)
        checksum = self._source.checksum_of(file) or self._checksums.get(number)
        ranged = self._ranged[number] = RangedFile(partial, self._stage, checksum)
        if partial.complete and number not in self._plan.spans:
            self._complete(number)
            return
        entry = self._source.object_of(file)
        for start, length in self._plan.ranges_of(number):
            if start not in partial.written:
                yield RangeJob(number, entry, start, length, partial.path, ranged.kind, self.sink)

    def _small_file_jobs(self, numbers: Iterable[int]) -> Iterator[ObjectJob | BundleJob]:
        for number in numbers:
            file = self._plan.files[number]
            if not file.size:
                self._stage.write_small(number, memoryview(b""), file)
                self._published(file, 0, 0)
            elif self.bundled is None or not self.bundled.add(number, self._source.object_of(file)):
                yield self._object_job(number)
        if self.bundled is not None:
            yield from self.bundled.jobs(self._object_job)

    def _object_job(self, number: int) -> ObjectJob:
        """The job of a small file, by its number in the plan."""
        file = self._plan.files[number]
        entry, checksum = self._source.object_of(file), self._source.checksum_of(file)
        return ObjectJob(number, entry, file, self.sink, checksum)

    async def write(self, job: Job, data: memoryview) -> None:
        """Write the bytes of a job that has fallen back; raises `OSError`, ENOSPC if the volume is full."""
        if isinstance(job, RangeJob):
            ranged = self._ranged[job.number]
            await asyncio.to_thread(self._stage.write, ranged.partial.path, data, job.start)
            kind = ranged.kind or (ChecksumKind.CRC64NVME if self.sink.computes else None)
            self._range_written(job, ranged.written_range(job.start, data, kind))
            return
        if len(data) < MIN_THREAD_BYTES:
            self._stage.write_small(job.number, data, job.file)
        else:
            path = self._stage.create_partial(job.number)
            await asyncio.to_thread(self._stage.write, path, data, 0)
            self._stage.publish(path, job.file)
        job.content = crc64(data) if self.sink.computes else None
        self._file_written(job)

    def record(self, job: RangeJob) -> None:
        """Record a range without a checksum whose bytes are in the file; raises `OSError` as `write`."""
        self._range_written(job, WrittenRange(job.start, job.length))

    def publish(self, ranged: RangedFile) -> None:
        """Publish a file that is complete and verified."""
        ranged.partial.publish()
        self._published(ranged.entry, 0, ranged.partial.content)

    def _file_written(self, job: ObjectJob) -> None:
        if self.confirmation is not None and job.held:
            self.confirmation.add(job.entry, partial(self._publish_held, job))
        else:
            self._published(job.file, job.length, job.content)

    def _publish_held(self, job: ObjectJob) -> None:
        self._stage.rename_in(job.held, job.file.name)
        self._published(job.file, job.length, job.content)

    def _range_written(self, job: RangeJob, written: WrittenRange) -> None:
        ranged = self._ranged[job.number]
        if job.checksum is not None:
            ranged.expect(job.checksum)
        complete = ranged.add(written)
        self._progress(0, written.length)
        if complete and job.number not in self._plan.spans:
            self._complete(job.number)

    def _complete(self, number: int) -> None:
        ranged = self._ranged.pop(number)
        if not ranged.matches():
            self._repair(ranged)
        elif self.confirmation is None or ranged.has_checksum:
            self.publish(ranged)
        else:
            entry = self._source.object_of(ranged.entry)
            self.confirmation.add(entry, partial(self.publish, ranged))

    def _published(self, file: Entry, count: int, content: int | None) -> None:
        if self._stage.checksums is not None and content is not None:
            self._stage.checksums[file.name] = content
        self._counters.files += 1
        self._progress(1, count)
