from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Changed, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.byte_stream import END
from podferry.sidecar.fetch.range_reader import RangeReader
from podferry.storage.memory.store import Content, Fault, MemoryStore


@pytest.fixture
def store():
    return MemoryStore(parse_uri("memory://range-reader"), Content())


@pytest.fixture
def reader(store, no_waiting):
    """Ten bytes may be in flight."""
    return RangeReader(store, PrefetchSettings(buffer_bytes=10, attempts=2))


async def listed(store):
    await store.write("a", b"0123456789")
    return await store.stat("a")


async def waits(work):
    """Whether something waits for bytes in flight; it is cancelled then."""
    task = asyncio.create_task(work)
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    return (await asyncio.gather(task, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_a_range_waits_until_others_are_released(store, reader):
    entry = await listed(store)
    assert bytes(await reader.fetch(entry, 2, 6)) == b"234567"
    assert await waits(reader.fetch(entry, 0, 5))
    reader.release(6)
    assert bytes(await reader.fetch(entry, 0, 10)) == b"0123456789"


async def test_a_failed_fetch_releases_its_bytes(store, reader):
    entry = await listed(store)
    store.faults.append(Fault("read", error=Unavailable.of("no route")))
    assert bytes(await reader.fetch(entry, 0, 1)) == b"0"
    reader.release(1)
    await store.write("a", b"9876543210")
    with pytest.raises(Changed):
        await reader.fetch(entry, 0, 10)
    assert not await waits(reader.acquire(10))


async def test_a_stream_releases_each_chunk_once_it_has_been_read(store, reader):
    entry = await listed(store)
    stream = reader.open_stream()
    stream.put(await reader.fetch(entry, 0, 10))
    stream.put(END)
    assert await asyncio.to_thread(stream.read, 10) == b"0123456789"
    assert await waits(reader.acquire(1))
    assert await asyncio.to_thread(stream.read, 1) == b""
    assert not await waits(reader.acquire(10))


async def test_an_empty_range_needs_no_request(store, reader):
    entry = await listed(store)
    store.content.calls.clear()
    assert bytes(await reader.fetch(entry, 0, 0)) == b""
    assert store.content.calls == []
