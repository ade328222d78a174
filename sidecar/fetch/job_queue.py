"""Hands out the jobs of a prefetch in batches, to this process's pool and to worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from podferry.contract.errors import FerryError
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.storage.http.connection import GetJob, body_bytes
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import PartialRequestBuilder, RequestBuilder

CLOSED = "the pool has closed"
OTHER_VERSION = "the server does not have this version"
BATCH_JOBS = 128
"""Large enough to make preparing them cheap, small enough to share."""
BATCH_BYTES = 32 << 20
"""Limit for large ranges, so that they are shared as well."""


class JobQueue:
    """See `podferry.storage.http.pool.JobSource`.

    Args:
        builder: Builds their requests.
        jobs: Those that its process takes.
        on_fall_back: Called with each job that is for the store's own client.
        limit: Of the bytes that the jobs request; None for as many as arrive.
    """

    def __init__(
        self,
        builder: RequestBuilder,
        jobs: Iterator[Any],
        on_fall_back: Callable[[Any, UnexpectedResponse], None],
        limit: RateLimit | None = None,
    ) -> None:
        self._builder, self._jobs, self._on_fall_back = builder, jobs, on_fall_back
        self._limit, self.origin = limit, builder.origin
        self._partial = builder if isinstance(builder, PartialRequestBuilder) else None

    async def next_batch(self) -> Sequence[GetJob]:
        """See `JobSource.next_batch`."""
        while jobs := self._take():
            if await self._permit(jobs) and await self.prepare(jobs):
                return jobs
        return ()

    async def _permit(self, jobs: Sequence[GetJob]) -> bool:
        """Wait until the limit permits these jobs."""
        try:
            if self._limit is not None:
                await self._limit.take(sum(map(body_bytes, jobs)))
        except asyncio.CancelledError:
            self._return(jobs, CLOSED)
            raise
        return True

    async def prepare(self, jobs: Sequence[GetJob]) -> bool:
        """Prepare the requests of these jobs; False if that failed and they have fallen back."""
        try:
            await self._builder.prepare([job.entry for job in jobs])
        except FerryError as error:  # the store's own client gives the full message
            self._return(jobs, str(error))
            return False
        except asyncio.CancelledError:
            self._return(jobs, CLOSED)
            raise
        return True

    @property
    def _batch_bytes(self) -> float:
        """Those of a second where there is a limit, so that it holds for each second."""
        return BATCH_BYTES if self._limit is None else min(BATCH_BYTES, self._limit.share)

    def _take(self) -> list[GetJob]:
        batch: list[GetJob] = []
        count = 0
        for job in self._jobs:
            if self._partial is not None and not self._partial.serves(job.entry):
                self._return([job], OTHER_VERSION)
                continue
            batch.append(job)
            count += body_bytes(job)
            if len(batch) >= BATCH_JOBS or count >= self._batch_bytes:
                break
        return batch

    def _return(self, jobs: Sequence[GetJob], reason: str) -> None:
        for job in jobs:
            self._on_fall_back(job, UnexpectedResponse(reason))

    def request(self, job: GetJob) -> bytes:
        """See `JobSource.request`."""
        return self._builder.build(job.entry, job.start, job.length, "HEAD" if job.head_only else "GET")

    def fall_back(self, job: GetJob, reason: UnexpectedResponse) -> None:
        """See `JobSource.fall_back`."""
        self._on_fall_back(job, reason)
