"""Sends one file by the method that suits its size and store. Each byte is verified before it is sent.

All transfers share one bound on the bytes in flight, so that memory does not depend on sizes, and many small
files are as fast as one large one.
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
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.multipart import MultipartStore, UploadedPart

log = structlog.get_logger(__name__)

MULTIPART_MIN_BYTES = 1 << 20
"""From this size a file is a multipart upload, even of one part. 200 files of 5 MiB took 4.2 s of CPU and
146 MiB of memory that way, 7.3 s and 305 MiB as writes of the S3 engine. Below, two more requests cost more.
"""
COPIES = 2
"""An engine's write holds its own copy, or fills one chunk while it sends another."""


@dataclass(frozen=True, slots=True)
class FileUpload:
    """A file to send, as the first pass read it; `journal` records what the store has received."""

    file: PlannedFile
    reader: VerifiedReader
    journal: UploadJournal

    @property
    def target(self) -> str:
        """The object's name, relative to the lineage."""
        return self.journal.plan.target(self.file.name)


class FileSender:
    """Sends files to the committer's lineage; `multipart` is None if its store has none.

    `threads` read and digest files: few, since they compete with the trainer for cores.
    """

    def __init__(
        self,
        committer: Committer,
        multipart: MultipartStore | None,
        settings: CheckpointSettings,
        rate_limiter: RateLimiter,
        counters: UploadCounters,
    ) -> None:
        self._committer, self._multipart, self._settings = committer, multipart, settings
        self._rate_limiter, self._counters = rate_limiter, counters
        self._in_flight = ByteSemaphore(settings.parts_in_flight * settings.part_bytes)
        self.threads = ThreadPoolExecutor(settings.threads, "reading")

    async def send(self, upload: FileUpload) -> None:
        """Send a file, or what is missing of it by the journal.

        Raises:
            Changed, Refused: See `VerifiedReader.part`.
            FerryError: The store's, after all attempts.
        """
        large = len(upload.file.parts) > 1
        if self._multipart is not None and (large or upload.file.size >= MULTIPART_MIN_BYTES):
            await self._send_multipart(upload, self._multipart)
        elif large:
            await self._send_stream(upload)
        else:
            await self._send_object(upload)
        upload.journal.record(FileSent(upload.file.name))

    async def _send_object(self, upload: FileUpload) -> None:
        async def send() -> None:
            await self._committer.write(upload.target, await self._read(upload, 1))

        async with self._reserve_memory(COPIES * upload.file.size):
            await retry(self._settings.attempts, send)
        self._counters.add(upload.file.size)

    async def _send_stream(self, upload: FileUpload) -> None:
        async def send() -> None:
            body = upload.reader.body(Fingerprint(upload.file.xxh128, upload.file.parts))
            await self._committer.write(upload.target, self._limited(body))

        async with self._reserve_memory(COPIES * upload.file.part_bytes):
            await retry(self._settings.attempts, send)
        self._counters.add(upload.file.size)

    def _limited(self, body: Iterator[bytes]) -> Iterator[bytes]:
        """The body at the limited rate; engines read it in a thread."""
        for part in body:
            time.sleep(self._rate_limiter.reserve(len(part)))
            yield part

    async def _send_multipart(self, upload: FileUpload, multipart: MultipartStore) -> None:
        """Send in parts; start over if the store has forgotten the upload."""
        for left in reversed(range(self._settings.attempts)):
            try:
                await self._send_missing_parts(upload, multipart)
            except NotFound as error:
                if not left or isinstance(error, BucketNotFound):
                    raise
                log.info("the store has forgotten an upload: starting over", reason=str(error))
                upload.journal.forget(upload.file.name)
            else:
                return

    async def _send_missing_parts(self, upload: FileUpload, multipart: MultipartStore) -> None:
        file, journal, attempts = upload.file, upload.journal, self._settings.attempts
        name = self._committer.store.path(upload.target)
        if file.name not in journal.uploads:
            upload_id = await retry(attempts, lambda: multipart.begin(name, file.part_bytes))
            journal.record(UploadStarted(file.name, upload_id))
        missing, limit = journal.missing_parts(file), self._settings.parts_in_flight
        await for_each_limited(missing, lambda number: self._send_part(upload, multipart, number), limit)
        upload_id, receipts = journal.uploads[file.name], journal.receipts(file.name)
        await retry(attempts, lambda: multipart.complete(name, upload_id, receipts))

    async def _send_part(self, upload: FileUpload, multipart: MultipartStore, number: int) -> None:
        name = self._committer.store.path(upload.target)
        upload_id = upload.journal.uploads[upload.file.name]
        _, length = upload.reader.span(number)

        async def send() -> UploadedPart:
            return await multipart.send(name, upload_id, number, await self._read(upload, number))

        async with self._reserve_memory(length):
            receipt = await retry(self._settings.attempts, send)
            upload.journal.record(PartSent(upload.file.name, receipt))
        self._counters.add(length)

    async def _read(self, upload: FileUpload, number: int) -> bytes:
        """A verified part, as soon as the rate allows."""
        _, length = upload.reader.span(number)
        await self._rate_limiter.take(length)
        loop, expected = asyncio.get_running_loop(), upload.file.parts[number - 1]
        return await loop.run_in_executor(self.threads, upload.reader.part, number, expected)

    @asynccontextmanager
    async def _reserve_memory(self, count: int) -> AsyncIterator[None]:
        """Reserve bytes in flight; kept between attempts, as the bytes may be."""
        await self._in_flight.acquire(count)
        try:
            yield
        finally:
            self._in_flight.release(count)
