import asyncio
import os
from pathlib import Path

import msgspec
import pytest
import stamina
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from podferry.cache.holder.content_checksums import RECORD
from podferry.cache.holder.refresher import refresh
from podferry.cache.holder.served_versions import UNREAD_SECONDS
from podferry.cache.holder.server import HolderServer
from podferry.contract.cache_api import STATUS_PATH, HolderStatus
from podferry.contract.errors import AccessDenied, Refused, Unavailable
from podferry.contract.shared_stage import SharedRecord
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.file_lock import release
from podferry.storage.memory.store import Fault
from tests.support.dataset_site import held, memory_dataset
from tests.support.holder_site import shared_stage
from tests.support.output_site import until

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
    stage = await filled(content, tmp_path / "held")
    assert stage.complete.document.manifest.files == 3
    assert reads(content) == []


async def test_nothing_of_podferry_is_among_the_files(content, tmp_path):
    for _ in range(2):  # fetched, then adopted
        stage = await filled(content, tmp_path / "held")
        assert sorted(path.name for path in stage.place.files.iterdir()) == ["a", "b"]


class Clock:
    def __init__(self):
        self.seconds = self.step = 0.0

    def __call__(self):
        self.seconds += self.step
        return self.seconds


async def swept(stage, clock, seconds=UNREAD_SECONDS):
    """The earlier versions that are left after so much time, in which the holder looks every 10 s."""
    for _ in range(int(seconds / 10)):
        clock.seconds += 10
        await stage.versions.remove_unread()
    return list(stage.versions.files.old_numbers())


async def test_a_reader_keeps_its_version_and_later_ones_in_memory(content, tmp_path):
    clock = Clock()
    stage = shared_stage(content.uri, tmp_path / "held", now=clock)
    await stage.fill()
    mounted = os.open(stage.place.files, os.O_PATH)  # as a pod's mount, which is of the directory itself
    lock = stage.make_lock()
    for number in range(2):
        content.objects["d/b"] = b"changed %d" % number
        await refresh(stage)
        assert await swept(stage, clock, 2 * UNREAD_SECONDS) == list(range(number + 1))
    assert held(stage.place.files) == {**FILES, "b": b"changed 1"}
    assert held(Path(f"/proc/self/fd/{mounted}")) == FILES
    os.close(lock)
    assert await swept(stage, clock) == []
    assert held(Path(f"/proc/self/fd/{mounted}")) == {}
    os.close(mounted)
    await stage.close()


async def test_a_reader_that_gets_its_lock_again_keeps_the_oldest_version(content, tmp_path):
    clock = Clock()
    stage = shared_stage(content.uri, tmp_path / "held", now=clock)
    await stage.fill()
    lock = stage.make_lock()
    content.objects["d/b"] = b"changed"
    await refresh(stage)
    assert await swept(stage, clock, 2 * UNREAD_SECONDS) == [0]
    os.close(lock)  # its agent is killed, and started again
    assert await swept(stage, clock, UNREAD_SECONDS / 2) == [0]
    lock = stage.make_lock(starts=False)
    assert await swept(stage, clock, 2 * UNREAD_SECONDS) == [0]
    os.close(lock)
    assert await swept(stage, clock) == []
    await stage.close()


async def test_the_next_holder_keeps_the_versions_of_an_earlier_ones_readers(content, tmp_path):
    clock = Clock()
    first = shared_stage(content.uri, tmp_path / "held", now=clock)
    await first.fill()
    content.objects["d/b"] = b"changed"
    await refresh(first)
    lock = first.make_lock()  # of the second version
    content.objects["d/b"] = b"changed again"
    await refresh(first)
    await first.close()
    again = shared_stage(content.uri, tmp_path / "held", now=clock)
    await again.fill()
    assert held(again.place.files) == {**FILES, "b": b"changed again"}
    assert again.versions.is_read  # readers may still ask for a lock
    assert await swept(again, clock, UNREAD_SECONDS / 2) == [0, 1]
    assert await swept(again, clock, UNREAD_SECONDS) == [1]
    os.close(lock)
    assert await swept(again, clock) == []
    await again.close()


async def test_readers_without_a_holder_never_take_what_changes_for_complete(content, tmp_path, monkeypatch):
    stage = await filled(content, tmp_path / "held")
    content.objects["d/b"] = b"changed"
    seen = []
    rename = Path.rename

    def watched(path, target):
        seen.append(stage.place.record.exists())
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", watched)
    again = shared_stage(content.uri, tmp_path / "held")
    await again.fill()
    await refresh(again)
    await again.close()
    assert seen == [False, False]
    record = decode_document(stage.place.record.read_bytes(), SharedRecord, 1, "record")
    assert [entry.size for entry in record.held.manifest.entries] == [3, 3, 7]


async def test_files_that_differ_from_the_record_are_fetched_again(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    (stage.place.files / "a/1").write_bytes(b"0ne")
    content.calls.clear()
    await filled(content, tmp_path / "held")
    assert reads(content) == ["a/1"]
    assert held(stage.place.files) == FILES


async def test_a_source_that_cannot_be_read_leaves_it_as_it_is(content, tmp_path):
    await filled(content, tmp_path / "held")
    content.faults.append(Fault("entries", error=AccessDenied.of("no"), times=9))
    stage = await filled(content, tmp_path / "held")
    await refresh(stage)
    assert (stage.complete is not None, stage.failure) == (True, None)
    assert "no" in str(stage.refresh_failure)
    assert stage.place.record.is_file()


async def test_another_dataset_in_the_directory_is_not_adopted(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    record = stage.place.private / RECORD
    whole = record.read_bytes()
    for wrong in (whole.replace(b'"uri":"' + str(content.uri).encode(), b'"uri":"memory://other'), b"{"):
        assert wrong != whole
        record.write_bytes(wrong)
        again = await filled(content, tmp_path / "held")
        assert (again.adopted, record.read_bytes()) == (False, whole)


@pytest.fixture
def other():
    """Another dataset, with a file of a name that both have."""
    with memory_dataset({"d/b": b"other", "d/c": b"secret"}) as made:
        yield made


@pytest.mark.parametrize("record", ["whole", "lost"])
async def test_a_reader_keeps_its_files_when_the_holder_gets_another_source(content, other, tmp_path, record):
    clock = Clock()
    first = shared_stage(content.uri, tmp_path / "held", now=clock)
    await first.fill()
    mounted = os.open(first.place.files, os.O_PATH)
    lock = first.make_lock()
    await first.close()
    if record == "lost":
        (first.place.private / RECORD).unlink()
    for _ in range(2):  # the second time after a restart
        stage = shared_stage(other.uri, tmp_path / "held", now=clock)
        await stage.fill()
        assert held(Path(f"/proc/self/fd/{mounted}")) == FILES
        assert held(stage.place.files) == {"b": b"other", "c": b"secret"}
        assert await swept(stage, clock, 2 * UNREAD_SECONDS) == [0]
        await stage.close()
    os.close(lock)
    stage = shared_stage(other.uri, tmp_path / "held", now=clock)
    await stage.fill()
    assert await swept(stage, clock) == []
    assert held(stage.place.files) == {"b": b"other", "c": b"secret"}
    os.close(mounted)
    await stage.close()


async def test_a_reader_keeps_its_files_when_the_dataset_is_frozen_again(content, tmp_path):
    stage = await filled(content, tmp_path / "held")
    mounted = os.open(stage.place.files, os.O_PATH)
    lock = stage.make_lock()
    content.objects["d/b"] = b"changed"
    digest = (await filled(content, tmp_path / "elsewhere")).complete.digest
    again = await filled(content, tmp_path / "held", digest=digest)
    assert held(Path(f"/proc/self/fd/{mounted}")) == FILES
    assert held(again.place.files) == {**FILES, "b": b"changed"}
    os.close(lock)
    os.close(mounted)


async def test_what_was_not_complete_is_continued_next_to_what_is_read(content, other, tmp_path):
    first = await filled(content, tmp_path / "held")
    lock = first.make_lock()
    other.faults.append(Fault("read", "c", error=AccessDenied.of("no")))
    stage = shared_stage(other.uri, tmp_path / "held")
    with pytest.raises(AccessDenied):
        await stage.fill()
    await stage.close()
    stage = await filled(other, tmp_path / "held")
    assert list(stage.versions.files.old_numbers()) == [0]
    os.close(lock)


async def test_what_is_read_stays_in_place_without_room_for_another_dataset(content, other, tmp_path):
    clock = Clock()
    first = await filled(content, tmp_path / "held")
    lock = first.make_lock()
    stage = shared_stage(other.uri, tmp_path / "held", size_limit=8192, now=clock)
    running = stage.place.claim()
    with stamina.set_testing(True, attempts=3), pytest.raises(Unavailable, match="larger than its space"):
        await stage.fill()
    assert "larger than its space" in str(stage.refresh_failure)
    assert held(stage.place.files) == FILES
    os.close(lock)
    clock.step = UNREAD_SECONDS
    with stamina.set_testing(True, attempts=3):
        await stage.fill()
    assert held(stage.place.files) == {"b": b"other", "c": b"secret"}
    assert stage.refresh_failure is None
    release(running)
    await stage.close()


async def test_a_container_that_starts_while_another_dataset_is_fetched_sees_its_own(
    content, other, tmp_path
):
    await filled(content, tmp_path / "held")
    blocked = asyncio.Event()
    other.faults.append(Fault("read", "c", wait=blocked))
    stage = shared_stage(other.uri, tmp_path / "held")
    filling = asyncio.create_task(stage.fill())
    await until(lambda: ("read", "c") in other.calls)
    assert held(stage.place.files) == FILES
    assert stage.place.record.is_file()  # also for who finds no holder
    blocked.set()
    await filling
    assert held(stage.place.files) == {"b": b"other", "c": b"secret"}
    await stage.close()


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
    locks = [stage.locks.make(0) for _ in range(2)]
    async with TestServer(HolderServer([stage], "n1").application()) as server, ClientSession() as session:

        async def readers():
            async with session.get(server.make_url(STATUS_PATH)) as response:
                return msgspec.json.decode(await response.read(), type=HolderStatus).readers

        assert [name.startswith("a reader in place (") for name in await readers()] == [True, True]
        assert len(set(await readers())) == 2
        for lock in locks:
            os.close(lock)
        assert await readers() == ()
