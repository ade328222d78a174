"""Hands out the jobs of a prefetch in batches, to this process's pool and to worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from podferry.contract.errors import FerryError
from podferry.storage.http.connection import GetJob, body_bytes
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import RequestBuilder

BATCH_JOBS = 128
"""Large enough to make preparing them cheap, small enough to share."""
BATCH_BYTES = 32 << 20
"""Limit for large ranges, so that they are shared as well."""


class JobQueue:
    """See `podferry.storage.http.pool.JobSource`.

    Args:
        builder: Builds their requests.
        jobs: All of them; the iterator may be shared.
        on_fall_back: Called with each job that is for the store's own client.
    """

    def __init__(
        self,
        builder: RequestBuilder,
        jobs: Iterator[Any],
        on_fall_back: Callable[[Any, UnexpectedResponse], None],
    ) -> None:
        self._builder, self._jobs, self._on_fall_back = builder, jobs, on_fall_back
        self.origin = builder.origin

    async def next_batch(self) -> Sequence[GetJob]:
        """See `JobSource.next_batch`."""
        while jobs := self._take():
            if await self.prepare(jobs):
                return jobs
        return ()

    async def prepare(self, jobs: Sequence[GetJob]) -> bool:
        """Prepare the requests of these jobs; False if that failed and they have fallen back."""
        try:
            await self._builder.prepare([job.entry for job in jobs])
        except FerryError as error:  # the store's own client gives the full message
            self._return(jobs, str(error))
            return False
        except asyncio.CancelledError:
            self._return(jobs, "the pool has closed")
            raise
        return True

    def _take(self) -> list[GetJob]:
        batch: list[GetJob] = []
        count = 0
        for job in self._jobs:
            batch.append(job)
            count += body_bytes(job)
            if len(batch) >= BATCH_JOBS or count >= BATCH_BYTES:
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
