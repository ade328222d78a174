"""Sends one planned file, by the way that its size and its store allow. Each byte is verified before it goes.

All transfers share one bound of bytes in flight, so that memory is constant in the sizes and many small files
go as fast as one large one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from podferry.contract.errors import BucketNotFound, NotFound
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.upload.rate_limiter import RateLimiter
from podferry.sidecar.checkpoint.upload.upload_journal import (
    FileSent,
    PartSent,
    PlannedFile,
    UploadJournal,
    UploadStarted,
)
from podferry.sidecar.checkpoint.upload.verified_reader import Fingerprint, VerifiedReader
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.concurrency import for_each_limited, retry
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.multipart import MultipartStore, UploadedPart

log = structlog.get_logger(__name__)

IN_PARTS_FROM = 1 << 20
"""Bytes from which a file goes in parts, be it a single one. 200 files of 5 MiB took 4.2 s of CPU and 146 MiB
of memory so, 7.3 s and 305 MiB by the writes of the engine for S3. Below, two more requests cost more.
"""
COPIES = 2
"""An engine's write holds its own copy, or fills one chunk while it sends another."""


@dataclass(frozen=True, slots=True)
class FileUpload:
    """A file to send.

    Attributes:
        file: As the first pass read it.
        reading: Reads it again.
        ledger: What of it has arrived.
    """

    file: PlannedFile
    reading: VerifiedReader
    ledger: UploadJournal

    @property
    def target(self) -> str:
        """Where it goes, relative to the lineage."""
        return self.ledger.plan.target(self.file.name)


class FileSender:
    """Brings files to the destination.

    Args:
        committer: Knows the names of its lineage.
        parts: Of its store, None where that cannot.
        settings: Sizes, threads and attempts.
        throttle: Bounds the rate.
        meter: Told of all that has arrived.

    Attributes:
        threads: Where files are read and digested: few, since they take the trainer's cores.
    """

    def __init__(
        self,
        committer: Committer,
        parts: MultipartStore | None,
        settings: CheckpointSettings,
        throttle: RateLimiter,
        meter: UploadCounters,
    ) -> None:
        self._committer, self._parts, self._settings = committer, parts, settings
        self._throttle, self._meter = throttle, meter
        self._budget = ByteSemaphore(settings.parts_in_flight * settings.part_bytes)
        self.threads = ThreadPoolExecutor(settings.threads, "reading")

    async def send(self, job: FileUpload) -> None:
        """Send a file, or what the ledger says is missing of it.

        Raises:
            Changed, Refused: See `VerifiedReader.part`.
            FerryError: The store's, after the attempts are spent.
        """
        large = len(job.file.parts) > 1
        if self._parts is not None and (large or job.file.size >= IN_PARTS_FROM):
            await self._in_parts(job, self._parts)
        elif large:
            await self._in_chunks(job)
        else:
            await self._in_one(job)
        job.ledger.note(FileSent(job.file.name))

    async def _in_one(self, job: FileUpload) -> None:
        async def send() -> None:
            await self._committer.write(job.target, await self._read(job, 1))

        async with self._room(COPIES * job.file.size):
            await retry(self._settings.attempts, send)
        self._meter.add(job.file.size)

    async def _in_chunks(self, job: FileUpload) -> None:
        async def send() -> None:
            body = job.reading.body(Fingerprint(job.file.xxh128, job.file.parts))
            await self._committer.write(job.target, self._paced(body))

        async with self._room(COPIES * job.file.part_bytes):
            await retry(self._settings.attempts, send)
        self._meter.add(job.file.size)

    def _paced(self, body: Iterator[bytes]) -> Iterator[bytes]:
        """The body at the throttle's rate; engines read it in a thread."""
        for part in body:
            time.sleep(self._throttle.reserve(len(part)))
            yield part

    async def _in_parts(self, job: FileUpload, parts: MultipartStore) -> None:
        """Send in parts; from the first one again where the store has forgotten what it had."""
        for left in reversed(range(self._settings.attempts)):
            try:
                await self._missing_parts(job, parts)
            except NotFound as error:
                if not left or isinstance(error, BucketNotFound):
                    raise
                log.info("the store has forgotten an upload: beginning it anew", reason=str(error))
                job.ledger.lost(job.file.name)
            else:
                return

    async def _missing_parts(self, job: FileUpload, parts: MultipartStore) -> None:
        file, ledger = job.file, job.ledger
        name = self._committer.reader.store.path(job.target)
        if file.name not in ledger.uploads:
            upload = await retry(self._settings.attempts, lambda: parts.begin(name, file.part_bytes))
            ledger.note(UploadStarted(file.name, upload))
        missing = ledger.missing(file)
        await for_each_limited(
            missing, lambda number: self._part(job, parts, number), self._settings.parts_in_flight
        )
        await retry(
            self._settings.attempts,
            lambda: parts.complete(name, ledger.uploads[file.name], ledger.receipts(file.name)),
        )

    async def _part(self, job: FileUpload, parts: MultipartStore, number: int) -> None:
        name, upload = self._committer.reader.store.path(job.target), job.ledger.uploads[job.file.name]
        _, length = job.reading.span(number)

        async def send() -> UploadedPart:
            return await parts.send(name, upload, number, await self._read(job, number))

        async with self._room(length):
            job.ledger.note(PartSent(job.file.name, await retry(self._settings.attempts, send)))
        self._meter.add(length)

    async def _read(self, job: FileUpload, number: int) -> bytes:
        """A part, verified, when its turn has come."""
        _, length = job.reading.span(number)
        await self._throttle.take(length)
        loop = asyncio.get_running_loop()
        expected = job.file.parts[number - 1]
        return await loop.run_in_executor(self.threads, job.reading.part, number, expected)

    @asynccontextmanager
    async def _room(self, count: int) -> AsyncIterator[None]:
        """Room for so many bytes in flight; it is held between attempts, as the bytes may be."""
        await self._budget.take(count)
        try:
            yield
        finally:
            self._budget.give(count)
