import asyncio
import os
import socket

import pytest

from podferry.cache.holder.refresher import refresh
from podferry.cache.shared_stage import lock_server
from podferry.cache.shared_stage.lock_server import serving_locks
from podferry.contract.errors import Refused
from podferry.sidecar.dataset.shared_set import SharedSet
from tests.support.holder_site import shared_stage
from tests.support.output_site import until
from tests.support.patience import PATIENCE


async def test_readers_wait_until_it_is_complete_and_each_gets_a_lock(content, tmp_path):
    stage = shared_stage(content.uri, tmp_path / "held")
    async with serving_locks(stage):
        sets = [SharedSet(stage.place.directory) for _ in range(20)]
        opened = asyncio.gather(*(one.open() for one in sets))
        await asyncio.sleep(0)
        await stage.fill()
        messages = await opened
    assert {(one.digest, one.files, one.bytes) for one in messages} == {
        (stage.complete.document.manifest.digest, 3, 6)
    }
    assert len({os.fstat(one.lock).st_ino for one in sets}) == 20
    for one in sets:
        assert stage.readers
        one.close()
    assert not stage.readers
    await stage.close()


async def test_who_has_mounted_a_version_before_gets_the_lock_of_the_oldest(content, tmp_path, monkeypatch):
    monkeypatch.setattr(lock_server, "ASK_SECONDS", 0.1)
    stage = shared_stage(content.uri, tmp_path / "held")
    await stage.fill()
    for data in (b"1", b"2"):
        content.objects["d/b"] = data
        await refresh(stage)
    async with serving_locks(stage):
        starts, reads = SharedSet(stage.place.directory), SharedSet(stage.place.directory)
        await starts.open()
        assert stage.locks.numbers() == [2]
        await reads.keep()
        assert sorted(stage.locks.numbers()) == [0, 2]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(str(stage.place.directory / "holder.sock"))
            await until(lambda: sorted(stage.locks.numbers()) == [0, 0, 2])
        starts.close()
        reads.close()
    await stage.close()


async def test_who_has_mounted_a_version_gets_a_lock_while_another_dataset_is_fetched(content, tmp_path):
    stage = shared_stage(content.uri, tmp_path / "held")
    async with serving_locks(stage):
        reads = SharedSet(stage.place.directory)
        await asyncio.wait_for(reads.keep(), PATIENCE)
        assert stage.locks.numbers() == [0]
        reads.close()
    await stage.close()


async def test_readers_see_why_it_cannot_be_fetched(content, tmp_path):
    content.objects.clear()
    stage = shared_stage(content.uri, tmp_path / "held")
    async with serving_locks(stage):
        await asyncio.gather(stage.fill(), return_exceptions=True)
        with pytest.raises(Refused) as refused:
            await SharedSet(stage.place.directory).open()
    assert refused.value.problems == stage.failure.problems
    await stage.close()


async def test_a_holder_that_was_killed_does_not_keep_the_next_one_out(content, tmp_path):
    stage = shared_stage(content.uri, tmp_path / "held")
    (stage.place.directory / "holder.sock").touch()
    await stage.fill()
    async with serving_locks(stage):
        shared = SharedSet(stage.place.directory)
        await shared.open()
        shared.close()
    assert not (stage.place.directory / "holder.sock").exists()
    await stage.close()
