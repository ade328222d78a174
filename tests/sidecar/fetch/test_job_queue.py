from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied
from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.job_queue import BATCH_BYTES, BATCH_JOBS, JobQueue
from podferry.sidecar.fetch.rate_limit import MIN_SHARE, RateLimit
from podferry.sidecar.fetch.sinks import HeadJob, RangeJob
from podferry.storage.http.response_head import UnexpectedResponse
from tests.support.unsigned_requests import UnsignedRequestBuilder


class Prepared(UnsignedRequestBuilder):
    """Records which objects are prepared; waits or fails if a test sets so."""

    def __init__(self):
        super().__init__(1)
        self.names, self.failure, self.wait = [], None, None

    async def prepare(self, entries):
        if self.wait is not None:
            await self.wait.wait()
        if self.failure is not None:
            raise self.failure
        self.names.append([entry.name for entry in entries])


def heads(count):
    return [HeadJob(number, Entry(f"o{number}", 10)) for number in range(count)]


def queue_of(jobs, limit=None):
    """A queue, its builder and what has fallen back."""
    builder, fallen_back = Prepared(), []
    queue = JobQueue(builder, iter(jobs), lambda job, reason: fallen_back.append((job, str(reason))), limit)
    return queue, builder, fallen_back


async def test_jobs_are_prepared_batch_by_batch_in_their_order():
    jobs = heads(BATCH_JOBS + 3)
    queue, builder, fallen_back = queue_of(jobs)
    assert [*await queue.next_batch(), *await queue.next_batch()] == jobs
    assert await queue.next_batch() == ()
    assert [len(names) for names in builder.names] == [BATCH_JOBS, 3]
    assert fallen_back == []


async def test_a_batch_of_large_ranges_is_short():
    entry, half = Entry("large", 4 * BATCH_BYTES), BATCH_BYTES // 2
    jobs = [RangeJob(0, entry, number * half, half, Path("/x"), None, None) for number in range(5)]
    queue, _, _ = queue_of(jobs)
    assert [len(await queue.next_batch()) for _ in range(3)] == [2, 2, 1]


async def test_a_limit_has_each_batch_wait_for_the_one_before():
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    second = 4 * MIN_SHARE
    entry = Entry("large", 3 * second)
    jobs = [RangeJob(0, entry, number * MIN_SHARE, MIN_SHARE, Path("/x"), None, None) for number in range(12)]
    queue, _, _ = queue_of(jobs, RateLimit(second, lambda: 0.0, sleep))
    assert [len(await queue.next_batch()) for _ in range(4)] == [4, 4, 4, 0]
    assert waited == [1.0, 2.0]


async def test_jobs_that_still_wait_for_a_limit_fall_back_when_the_pool_closes():
    never = asyncio.Event()
    queue, _, fallen_back = queue_of(heads(2), RateLimit(1, lambda: 0.0, lambda seconds: never.wait()))
    await queue._limit.take(1)
    waiting = asyncio.create_task(queue.next_batch())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [job.number for job, _ in fallen_back] == [0, 1]


async def test_jobs_that_cannot_be_prepared_fall_back():
    jobs = heads(BATCH_JOBS + 1)
    queue, builder, fallen_back = queue_of(jobs)
    builder.failure = AccessDenied.of("the token has expired")
    assert await queue.next_batch() == ()
    assert [job for job, _ in fallen_back] == jobs
    assert {reason for _, reason in fallen_back} == {str(builder.failure)}


async def test_the_jobs_of_a_cancelled_batch_fall_back():
    jobs = heads(3)
    queue, builder, fallen_back = queue_of(jobs)
    builder.wait = asyncio.Event()
    taking = asyncio.create_task(queue.next_batch())
    await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert [job for job, _ in fallen_back] == jobs


def test_requests_name_their_range():
    entry = Entry("o", 100)
    head, part = HeadJob(0, entry), RangeJob(0, entry, 10, 20, Path("/x"), None, None)
    queue, _, fallen_back = queue_of([])
    assert queue.request(head).startswith(b"HEAD /o ")
    assert b"bytes=10-29\r\n" in queue.request(part)
    queue.fall_back(part, UnexpectedResponse("status 500"))
    assert fallen_back == [(part, "status 500")]
