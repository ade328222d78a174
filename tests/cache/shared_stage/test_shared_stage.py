import asyncio
import os

import msgspec
import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from podferry.cache.holder.server import HolderServer
from podferry.contract.cache_api import STATUS_PATH, HolderStatus
from podferry.contract.errors import AccessDenied, Refused
from podferry.storage.memory.store import Fault
from tests.support.dataset_site import held
from tests.support.holder_site import shared_stage

FILES = {"a/1": b"one", "a/2": b"two", "b": b""}


async def filled(content, root, **settings):
    """What a holder leaves in a directory."""
    stage = shared_stage(content.uri, root, **settings)
    await stage.fill()
    await stage.close()
    return stage


def reads(content):
    return [name for call, name in content.calls if call == "read"]


async def test_its_record_says_that_it_is_complete(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    assert held(stage.place.files) == FILES
    assert stage.place.record.is_file()


async def test_the_next_holder_serves_at_once_and_fetches_nothing(content, tmp_path):
    await filled(content, tmp_path / "held")
    content.calls.clear()
    stage = await filled(content, tmp_path / "held", relock_seconds=0)
    assert stage.complete.document.manifest.files == 3
    assert reads(content) == []


async def test_a_dataset_with_a_reader_is_not_compared_with_its_source(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    lock = stage.locks.make()
    content.objects["d/b"] = b"changed"
    again = await filled(content, tmp_path / "held", relock_seconds=0)
    assert held(again.place.files) == FILES
    os.close(lock)
    again = await filled(content, tmp_path / "held", relock_seconds=0)
    assert held(again.place.files) == {**FILES, "b": b"changed"}


async def test_readers_have_time_to_ask_a_new_holder(content, tmp_path):
    await filled(content, tmp_path / "held")
    content.objects["d/b"] = b"changed"
    stage = shared_stage(content.uri, tmp_path / "held", relock_seconds=600)
    filling = asyncio.create_task(stage.fill())
    await stage.wait(600)
    assert stage.complete is not None
    assert stage.place.record.is_file()
    assert held(stage.place.files) == FILES
    filling.cancel()
    await asyncio.gather(filling, return_exceptions=True)
    await stage.close()


async def test_files_that_differ_from_the_record_are_fetched_again(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    (stage.place.files / "a/1").write_bytes(b"0ne")
    content.calls.clear()
    await filled(content, tmp_path / "held", relock_seconds=600)
    assert reads(content) == ["a/1"]
    assert held(stage.place.files) == FILES


async def test_a_source_that_cannot_be_read_leaves_it_as_it_is(content, tmp_path):
    await filled(content, tmp_path / "held")
    content.faults.append(Fault("entries", error=AccessDenied.of("no"), times=9))
    stage = await filled(content, tmp_path / "held", relock_seconds=0)
    assert (stage.complete is not None, stage.failure) == (True, None)
    assert stage.place.record.is_file()


async def test_another_dataset_in_the_directory_is_not_adopted(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    record = stage.place.record.read_bytes()
    stage.place.record.write_bytes(record.replace(str(content.uri).encode(), b"memory://other"))
    await filled(content, tmp_path / "held", relock_seconds=600)
    stage.place.record.write_bytes(b"{")
    await filled(content, tmp_path / "held", relock_seconds=600)
    assert stage.place.record.read_bytes() == record


async def test_a_pack_is_refused(content, tmp_path):
    content.objects["d/podferry-pack.json"] = b"{}"
    stage = shared_stage(content.uri, tmp_path / "held")
    with pytest.raises(Refused, match="packed dataset"):
        await stage.fill()
    assert not stage.place.record.exists()
    await stage.close()


async def test_space_is_taken_from_datasets_that_nobody_needs(content, tmp_path, monkeypatch):
    await filled(content, tmp_path / "old")
    full = iter([[Refused.of("full").problems[0]]])
    monkeypatch.setattr("podferry.cache.holder.holder_stage.fit_problems", lambda *_, **__: next(full, []))
    stage = await filled(content, tmp_path / "new")
    assert held(stage.place.files) == FILES
    assert not (tmp_path / "old").exists()


async def test_the_status_counts_readers_in_place(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    locks = [stage.locks.make() for _ in range(2)]
    async with TestServer(HolderServer([stage], "n1").application()) as server, ClientSession() as session:

        async def readers():
            async with session.get(server.make_url(STATUS_PATH)) as response:
                return msgspec.json.decode(await response.read(), type=HolderStatus).readers

        assert [name.startswith("a reader in place (") for name in await readers()] == [True, True]
        assert len(set(await readers())) == 2
        for lock in locks:
            os.close(lock)
        assert await readers() == ()
