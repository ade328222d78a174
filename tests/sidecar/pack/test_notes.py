from __future__ import annotations

import msgspec
import pytest

from podferry.contract.pack import PackShard
from podferry.contract.uri import parse_uri
from podferry.sidecar.pack.notes import STARTED, PackStarted, ShardDone, read_note, shard_note
from podferry.storage.memory.faults import Content
from podferry.storage.memory.store import MemoryStore

BEGUN = PackStarted("0" * 64, 1000)


@pytest.fixture
def store():
    return MemoryStore(parse_uri("memory://notes"), Content())


async def test_a_note_is_read_as_it_was_written(store):
    done = ShardDone(PackShard("shard-00001.tar", 1024, "0" * 32, ()), '"tag"')
    for name, note in ((STARTED, BEGUN), (shard_note("shard-00001.tar"), done)):
        await store.write(name, msgspec.json.encode(note))
        assert await read_note(store, name, type(note), {name}) == note


async def test_a_note_that_is_not_listed_is_not_requested(store):
    await store.write(STARTED, msgspec.json.encode(BEGUN))
    store.content.calls.clear()
    assert await read_note(store, STARTED, PackStarted, set()) is None
    assert store.content.calls == []


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"format": 2}', b'{"format": 1, "source": 7, "shard_bytes": 1}']
)
async def test_an_unreadable_note_is_as_good_as_none(store, data):
    await store.write(STARTED, data)
    assert await read_note(store, STARTED, PackStarted, {STARTED}) is None
