from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.workers.main import RemoteJobs
from podferry.sidecar.fetch.workers.protocol import JobBatch, JobMessage, StartMessage
from podferry.storage.request_builder import Origin
from tests.support.patience import PATIENCE


async def test_a_batch_whose_read_was_cancelled_is_read_completely():
    """A pool that gives up is cancelled anywhere; what it was reading goes back to the agent."""
    reader = asyncio.StreamReader()
    job = JobMessage(1, Entry("a", 3), "a", 0, 3, "", None, None, b"GET")
    jobs = RemoteJobs(StartMessage(Origin("x", 1, tls=False), "/x", 0o644, True, False, False, 1), reader)
    frame = msgspec.msgpack.encode(JobBatch([job]))
    frame = len(frame).to_bytes(4, "big") + frame
    reader.feed_data(frame[:10])
    first = asyncio.create_task(jobs.next_batch())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    reader.feed_data(frame[10:])
    assert [found.number for found in await asyncio.wait_for(jobs.next_batch(), PATIENCE)] == [1]
