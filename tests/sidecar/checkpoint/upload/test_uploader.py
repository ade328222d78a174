import asyncio
import os

import msgspec
import pytest

from podferry.contract.errors import Changed, Unavailable
from podferry.contract.footprint import Footprint
from podferry.sidecar.checkpoint.upload import file_sender as sending
from podferry.sidecar.config.tuning import MIB, CheckpointSettings
from podferry.storage.memory.store import Fault
from tests.support.uploads import sent


@pytest.fixture(params=["parts", "chunks"])
def way(request, rig):
    """Both ways of large files."""
    if request.param == "chunks":
        rig.store.multipart = None
    return request.param


async def test_every_kind_of_file_is_uploaded(rig, way, link):
    contents = {"s/empty": b"", "s/small": b"1", "s/part": b"2" * 1024, "s/large": os.urandom(5000)}
    for name, data in contents.items():
        rig.write(name, data)
    commit = await rig.uploader().upload(link("s"))
    assert rig.store.bytes_of(commit) == contents
    assert [file.name for file in commit.files] == sorted(contents)
    assert commit.checkpoint.startswith("s-")
    whole = [f"{commit.checkpoint}/s/{name}" for name in ("empty", "part", "small")]
    large = [f"{commit.checkpoint}/s/large"]
    numbered = [f"{large[0]}#{number}" for number in range(1, 6)]
    assert sorted(sent(rig)) == sorted(whole + (numbered if way == "parts" else large))


async def test_from_a_size_on_one_part_is_a_multipart_upload(rig, uploader, link, monkeypatch):
    monkeypatch.setattr(sending, "MULTIPART_MIN_BYTES", 100)
    rig.write("s/a", b"1" * 99)
    rig.write("s/b", b"1" * 100)
    commit = await uploader.upload(link("s"))
    assert sorted(sent(rig)) == [f"{commit.checkpoint}/s/a", f"{commit.checkpoint}/s/b#1"]


async def test_send_reports_its_bytes_and_commits_nothing(rig, uploader, link):
    rig.write("s/a", b"1" * 3000)
    rig.write("s/b", b"2")
    result = await uploader.send(link("s"))
    assert (result.sent, result.referenced, result.existing) == (3001, 0, None)
    assert [file.name for file in result.files] == ["s/a", "s/b"]
    assert rig.store.commits() == []


async def test_data_is_written_before_the_commit_and_the_hint_after_it(rig, uploader, link):
    rig.write("s/w", b"1")
    commit = await uploader.upload(link("s"))
    written = [name for call, name in rig.content.calls if call == "write" and "/writers/" not in name]
    private = "run/.podferry"
    data = f"run/{commit.checkpoint}/s/w"
    assert written == [data, f"{private}/commits/000000000001.json", f"{private}/latest.json"]


async def test_a_change_between_two_files_commits_neither_version(rig, way, link):
    rig.settings = msgspec.structs.replace(rig.settings, parts_in_flight=1)
    rig.write("s/a", b"1" * 3000)
    rig.write("s/b", b"1" * 3000)
    held = link("s")
    rig.store.gated = "s/a"
    upload = asyncio.create_task(rig.uploader().upload(held))
    await rig.until(rig.store.reached.is_set)
    rig.write("s/b", b"2" * 3000)
    rig.store.go.set()
    with pytest.raises(Changed):
        await upload
    assert rig.store.commits() == []
    assert not any("s/b" in key for key in rig.content.objects)


async def test_the_same_content_is_sent_and_committed_once(rig, uploader, link):
    rig.write("s/w", b"1" * 2000)
    first = await uploader.upload(link("s"))
    calls = len(rig.content.calls)
    assert await uploader.upload(link("s")) == first
    again = await rig.uploader("two").send(link("s"))
    assert (again.existing, again.sent, again.referenced) == (first, 0, 2000)
    assert {call for call, _ in rig.content.calls[calls:]} <= {"children", "read", "stat"}


async def test_content_whose_objects_are_gone_is_sent_again(rig, uploader, link):
    rig.write("s/w", b"1")
    first = await uploader.upload(link("s"))
    del rig.content.objects[f"base/run/{first.checkpoint}/s/w"]
    rig.store.check = lambda before: None  # here it is the test that breaks a commit
    second = await uploader.upload(link("s"))
    assert second.checkpoint == f"{first.checkpoint}-one", "what a commit lists may be removed with it"
    assert rig.store.bytes_of(second) == {"s/w": b"1"}


async def test_content_whose_object_is_damaged_is_sent_again(rig, uploader, link):
    rig.store.check = lambda before: None  # here it is the test that breaks a commit
    rig.write("s/w", b"1" * 3000)
    first = await uploader.upload(link("s"))
    rig.content.objects[f"base/run/{first.checkpoint}/s/w"] = damaged = b"1" * 2999 + b"2"
    uploader._committer.content.damaged = {f"{first.checkpoint}/s/w"}
    second = await uploader.upload(link("s"))
    assert (second.sequence, rig.store.bytes_of(second)) == (2, {"s/w": b"1" * 3000})
    assert rig.store.bytes_of(first) == {"s/w": damaged}, "no object that a commit lists is replaced"
    assert await uploader.upload(link("s")) == second


async def test_a_removal_that_begins_during_an_upload_takes_nothing_of_it(rig, uploader, link):
    """The trainer returns to a version whose first commit is removed meanwhile."""
    for data in (b"1", b"2"):
        rig.replace("last.bin", data * 2000)
        await uploader.upload(link("last"))
    rig.replace("last.bin", b"1" * 2000)
    result = await uploader.send(link("last"))
    assert [commit.sequence for commit in (await rig.collector().remove(1)).commits] == [1]
    commit = await uploader._committer.commit("last", result.folder, result.files)
    assert rig.store.bytes_of(commit) == {"last.bin": b"1" * 2000}


async def test_a_temporary_failure_is_tried_again(rig, way, link):
    rig.write("s/small", b"1")
    rig.write("s/w", b"1" * 3000)
    for call in ("write", "begin", "send", "complete"):
        for after in (False, True):
            rig.faults.append(Fault(call, "*/s/*", error=Unavailable.of("no route"), after=after))
    commit = await rig.uploader().upload(link("s"))
    assert rig.store.bytes_of(commit) == {"s/small": b"1", "s/w": b"1" * 3000}


async def test_a_part_that_is_damaged_on_the_way_is_sent_again(rig, uploader, link):
    rig.write("s/w", b"1" * 3000)
    rig.faults.append(Fault("send", "*/s/w#2", times=2, corrupt=5))
    assert rig.store.bytes_of(await uploader.upload(link("s"))) == {"s/w": b"1" * 3000}


async def test_a_store_that_stays_away_commits_nothing(rig, uploader, link):
    rig.write("s/w", b"1")
    rig.faults.append(Fault("write", times=3, error=Unavailable.of("no route")))
    with pytest.raises(Unavailable):
        await uploader.upload(link("s"))
    assert rig.store.commits() == []
    assert (await uploader.upload(link("s"))).sequence == 1


async def test_a_cap_makes_parts_small_and_spreads_them(rig, link, monkeypatch):
    rig.settings = msgspec.structs.replace(rig.settings, part_bytes=4 * MIB, parts_in_flight=4)
    rig.write("s/w", b"1" * (5 * MIB))
    taken = []
    uploader = rig.uploader(limit=2 * MIB)
    monkeypatch.setattr(uploader._sender._rate_limiter, "reserve", lambda count: taken.append(count) or 0.0)
    await uploader.send(link("s"))
    assert taken == [2 * MIB, 2 * MIB, MIB]


@pytest.mark.parametrize("way", ["parts", "chunks"], indirect=True)
async def test_every_byte_waits_for_its_turn(rig, way, link, monkeypatch):
    rig.write("s/small", b"1" * 10)
    rig.write("s/w", b"1" * 3000)
    taken = []
    uploader = rig.uploader(limit=2 * MIB)
    monkeypatch.setattr(uploader._sender._rate_limiter, "reserve", lambda count: taken.append(count) or 0.0)
    rig.faults.append(Fault("write", "*/small", error=Unavailable.of("no route"), after=True))
    await uploader.send(link("s"))
    assert sorted(taken) == [10, 10, 3000 - 2048, 1024, 1024], "what is sent again takes a turn again"


async def test_no_more_bytes_are_in_flight_than_there_is_memory_for(rig, link):
    rig.settings = msgspec.structs.replace(rig.settings, parts_in_flight=3)
    for number in range(12):
        rig.write(f"s/{number}", os.urandom(700))
    rig.write("s/large", os.urandom(9000))
    flying, most = {}, []
    gate = asyncio.Event()
    rig.faults.append(Fault("*", "*/s/*", times=99, wait=gate))
    real_send, real_write = rig.store.multipart.send, rig.store.write

    async def counted(key, size, call):
        flying[key] = size
        most.append(sum(flying.values()))
        try:
            return await call
        finally:
            del flying[key]

    rig.store.multipart.send = lambda *a: counted(a[:3:2], len(a[3]), real_send(*a))
    rig.store.write = lambda name, body, *a: counted(name, len(body), real_write(name, body, *a))
    upload = asyncio.create_task(rig.uploader().send(link("s")))
    await rig.until(lambda: sum(flying.values()) >= 1400)
    gate.set()
    await upload
    assert max(most) <= 3 * 1024


def test_the_memory_sum_holds_what_is_in_flight_twice():
    settings = CheckpointSettings()
    assert 2 * settings.part_bytes * settings.parts_in_flight <= Footprint().buffers
