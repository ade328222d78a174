"""Hands out the jobs of a prefetch in lots: to the lane of this process, and to those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from podferry.contract.errors import FerryError
from podferry.storage.http.connection import GetJob, body_bytes
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.request_builder import Origin, RequestBuilder

BATCH_JOBS = 128
"""Jobs of a lot: enough to make preparing them cheap, few enough to share."""
BATCH_BYTES = 32 << 20
"""Bytes of a lot: large ranges are to be shared, too."""


class JobQueue:
    """See `podferry.storage.http.pool.JobSource`.

    Args:
        requests: How the store is asked.
        jobs: All that there is to do; shared with others who take from it.
        refused: Is given each job that is for the store's own client.
    """

    def __init__(
        self,
        requests: RequestBuilder,
        jobs: Iterator[Any],
        refused: Callable[[Any, UnexpectedResponse], None],
    ) -> None:
        self._requests, self._jobs, self._refused = requests, jobs, refused
        self._origin = requests.origin

    @property
    def origin(self) -> Origin:
        """See `JobSource.origin`."""
        return self._origin

    async def next_batch(self) -> Sequence[GetJob]:
        """See `JobSource.next_batch`."""
        while jobs := self._take():
            if await self.prepared(jobs):
                return jobs
        return ()

    async def prepared(self, jobs: Sequence[GetJob]) -> bool:
        """Whether the store's requests for these are ready; where they cannot be, they are refused."""
        try:
            await self._requests.prepare([job.entry for job in jobs])
        except FerryError as error:  # the store's client says more of it
            self._return(jobs, str(error))
            return False
        except asyncio.CancelledError:
            self._return(jobs, "the lane has ended")
            raise
        return True

    def _take(self) -> list[GetJob]:
        taken: list[GetJob] = []
        count = 0
        for job in self._jobs:
            taken.append(job)
            count += body_bytes(job)
            if len(taken) >= BATCH_JOBS or count >= BATCH_BYTES:
                break
        return taken

    def _return(self, jobs: Sequence[GetJob], why: str) -> None:
        for job in jobs:
            self._refused(job, UnexpectedResponse(why))

    def request(self, job: GetJob) -> bytes:
        """See `JobSource.request`."""
        return self._requests.build(job.entry, job.start, job.length, "HEAD" if job.head_only else "GET")

    def fall_back(self, job: GetJob, reason: UnexpectedResponse) -> None:
        """See `JobSource.fall_back`."""
        self._refused(job, reason)
