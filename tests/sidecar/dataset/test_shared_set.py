import asyncio
import socket
from contextlib import nullcontext

import pytest

from podferry.cache.shared_stage.lock_server import serving_locks
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import Changed, Unavailable
from podferry.contract.shared_stage import Handover
from podferry.sidecar.dataset import shared_set
from podferry.sidecar.dataset.shared_set import SharedSet
from tests.support.holder_site import shared_stage


@pytest.fixture
async def stage(content, tmp_path):
    """A complete stage without a holder, in a directory with a long name."""
    made = shared_stage(content.uri, tmp_path / ("long-" * 30))
    await made.fill()
    yield made
    await made.close()


async def test_progress_is_reported(content, tmp_path):
    stage, seen = shared_stage(content.uri, tmp_path / "held"), []
    async with serving_locks(stage):

        def on_filling(message):
            seen.append(message)
            filling.append(asyncio.create_task(stage.fill()))

        filling = []
        shared = SharedSet(stage.place.directory)
        await shared.open(on_filling)
        await asyncio.gather(*filling)
    assert seen == [Handover(str(content.uri))]
    assert shared.files == stage.place.files
    shared.close()
    shared.close()
    await stage.close()


async def test_what_the_last_holder_has_left_is_read_and_locked_later(stage):
    shared = SharedSet(stage.place.directory)
    message = await shared.open()
    assert (message.files, message.bytes, shared.lock) == (3, 6, None)
    keeping = asyncio.create_task(shared.keep())
    async with serving_locks(stage):
        await keeping
        assert stage.readers
    shared.close()


@pytest.mark.parametrize("broken", ["file", "record", "no record"])
async def test_what_is_not_complete_is_not_read_without_a_holder(stage, broken):
    if broken == "file":
        (stage.place.files / "a/1").unlink()
    elif broken == "record":
        stage.place.record.write_bytes(b"{")
    else:
        stage.place.record.unlink()
    with pytest.raises(Unavailable, match="Start its holder"):
        await SharedSet(stage.place.directory).open()


@pytest.fixture(params=["holder", "left"])
async def reachable(request, stage):
    """A stage with a holder that responds, or as the last one has left it."""
    async with serving_locks(stage) if request.param == "holder" else nullcontext():
        yield stage


async def test_another_version_than_the_frozen_one_is_refused(reachable):
    frozen = parse_reference(f"{reachable.uri}#sha256={'0' * 64}")
    with pytest.raises(Changed, match="another version"):
        await SharedSet(reachable.place.directory, frozen).open()
    assert not reachable.readers
    frozen = parse_reference(f"{reachable.uri}#sha256={reachable.complete.digest}")
    shared = SharedSet(reachable.place.directory, frozen)
    await shared.open()
    shared.close()


async def test_another_dataset_than_the_wanted_one_is_refused(reachable):
    with pytest.raises(Changed, match="another dataset") as changed:
        await SharedSet(reachable.place.directory, parse_reference("s3://datasets/other")).open()
    assert f"{reachable.uri}, not s3://datasets/other" in str(changed.value)
    assert not reachable.readers
    shared = SharedSet(reachable.place.directory, parse_reference(reachable.uri))
    await shared.open()
    shared.close()


async def test_a_holder_that_is_silent_or_ends_counts_as_gone(stage, monkeypatch):
    monkeypatch.setattr(shared_set, "SILENCE_SECONDS", 0.05)
    monkeypatch.chdir(stage.place.directory)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("holder.sock")
        listener.listen()
        shared = SharedSet(stage.place.directory)
        assert (await shared.open()).files == 3
        assert shared.lock is None
        listener.setblocking(False)
        listener.accept()[0].close()
        monkeypatch.setattr(shared_set, "SILENCE_SECONDS", 600)
        opening = asyncio.create_task(shared.open())
        channel, _ = await asyncio.get_running_loop().sock_accept(listener)
        channel.close()
        assert (await opening).files == 3
