from __future__ import annotations

import asyncio

import pytest

from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.storage.checksum.checksums import ChecksumKind, crc64
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


CONTENT = {name: crc64(data) for name, data in FILES.items()}
LARGE = {name for name, data in FILES.items() if len(data) > RANGE}


@pytest.mark.parametrize("kind", [None, ChecksumKind.CRC64NVME, ChecksumKind.SHA256, ChecksumKind.CRC32C])
@pytest.mark.parametrize("processes", [1, 2])
async def test_the_checksums_of_what_arrives_are_known(stage, port, objects, kind, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    objects.kind, stage.checksums = kind, {}
    objects.damaged = {("d/small-7", 0): 1, ("large", 3 * RANGE): 1} if kind else {}
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    await rig.prefetch().run()
    assert rig.held() == FILES
    # One CRC is computed of a range: of a large file with another one, its file would have to be read.
    unknown = LARGE if kind is ChecksumKind.CRC32C else set()
    assert stage.checksums == {name: value for name, value in CONTENT.items() if name not in unknown}


async def test_the_checksums_of_what_falls_back_are_known(stage, port):
    rig, stage.checksums = Rig(stage, port), {}
    rig.fallback.request_builder = None
    await rig.prefetch().run()
    assert (rig.held(), stage.checksums) == (FILES, CONTENT)


async def test_files_of_an_earlier_start_have_no_checksum_again(stage, port, objects):
    rig = Rig(stage, port)
    await rig.prefetch().run()
    stage.checksums = {}
    (stage.root / "buffers").unlink()
    await rig.prefetch().run()
    assert stage.checksums == {"buffers": CONTENT["buffers"]}
