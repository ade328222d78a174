from __future__ import annotations

import asyncio

import pytest

from tests.support.object_server import FILES, RANGE, Rig
from tests.support.unsigned_requests import UnsignedRequestBuilder


async def test_a_range_that_falls_back_is_not_compared_with_the_checksum_of_the_object(stage, port, objects):
    """Some stores state the checksum of the object with each range."""

    class Stating(UnsignedRequestBuilder):
        checksum_needs_head = False

    objects.states_with_ranges = True
    objects.short = ("large", 3 * RANGE)
    rig = Rig(stage, port)
    rig.fallback.request_builder = Stating(port)
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert rig.fallback.reads == [("large", 3 * RANGE)]


async def test_a_later_start_resumes_within_large_files(stage, port, objects):
    reached, released = asyncio.Event(), asyncio.Event()

    async def gate(name, start):
        if name == "e/larger" and start >= 10 * RANGE:
            reached.set()
            await released.wait()

    objects.gate = gate
    rig = Rig(stage, port)
    task = asyncio.create_task(rig.prefetch().run())
    await reached.wait()
    while len(objects.fetched("e/larger")) < 11:  # noqa: ASYNC110 - the pool has no event for it
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    released.set()
    before, objects.gate = set(objects.fetched("e/larger")), None
    objects.requests.clear()
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert not {start for start in before if start < 10 * RANGE} & set(objects.fetched("e/larger"))
    assert len(objects.fetched("e/larger")) >= 10
