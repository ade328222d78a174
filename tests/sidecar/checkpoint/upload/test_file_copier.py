from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.storage.memory.store import Fault
from tests.support.uploads import sent

FROZEN = b"f" * 3000


@pytest.fixture
async def first(rig, uploader, link):
    """The commit before, with a file that will not change."""
    rig.write("e-1/frozen", FROZEN)
    rig.write("e-1/head", b"1" * 3000)
    commit = await uploader.upload(link("e-1"))
    rig.write("e-2/frozen", FROZEN)
    rig.write("e-2/head", b"2" * 3000)
    return commit


def objects(commit):
    return {file.name: file.object for file in commit.files}


def copied(rig):
    return [name for call, name in rig.content.calls if call == "copy"]


async def test_the_folder_has_every_file_and_nothing_is_sent_twice(rig, first, uploader, link):
    calls, held = len(rig.content.calls), link("e-2")
    result = await uploader.send(held)
    assert objects(result) == {name: f"{result.folder}/{name}" for name in ("e-2/frozen", "e-2/head")}
    assert (result.sent, result.referenced) == (3000, 3000)
    assert not any("frozen" in name for name in sent(rig, calls))
    commit = await uploader.upload(held)
    for file in first.files:
        del rig.content.objects[f"base/run/{file.object}"]
    rig.store.check = lambda before: None
    assert rig.store.bytes_of(commit) == {"e-2/frozen": FROZEN, "e-2/head": b"2" * 3000}


async def test_large_files_are_referenced(rig, first, link):
    rig.settings = msgspec.structs.replace(rig.settings, copy_bytes=2999)
    commit = await rig.uploader().upload(link("e-2"))
    assert objects(commit)["e-2/frozen"] == f"{first.checkpoint}/e-1/frozen"
    assert copied(rig) == []


async def test_of_too_many_files_the_smallest_are_copied(rig, uploader, link):
    rig.settings = msgspec.structs.replace(rig.settings, copy_files=2)
    for number in (1, 2):
        for size in (30, 10, 20):
            rig.write(f"e-{number}/{size}", b"%d" % size * size)
        rig.write(f"e-{number}/head", b"%d" % number * 50)
        commit = await rig.uploader().upload(link(f"e-{number}"))
    own = {name for name, place in objects(commit).items() if place.startswith(commit.checkpoint)}
    assert own == {"e-2/10", "e-2/20", "e-2/head"}


async def test_a_store_without_copies_references(rig, first, link):
    rig.store.server_copy = None
    commit = await rig.uploader().upload(link("e-2"))
    assert objects(commit)["e-2/frozen"] == f"{first.checkpoint}/e-1/frozen"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [Unavailable.of("no route"), AccessDenied.of("not yours")])
async def test_a_failed_copy_leaves_the_reference(rig, first, uploader, link, error, after):
    rig.faults.append(Fault("copy", error=error, after=after))
    commit = await uploader.upload(link("e-2"))
    assert objects(commit)["e-2/frozen"] == f"{first.checkpoint}/e-1/frozen"
    rig.write("e-3/frozen", FROZEN)
    rig.write("e-3/head", b"3" * 3000)
    again = await uploader.upload(link("e-3"))
    refused = isinstance(error, AccessDenied)
    assert (f"{first.checkpoint}/e-1/frozen" in objects(again).values()) is refused, (
        "a refusal counts for good"
    )
    assert len(copied(rig)) == (1 if refused else 2)


async def test_a_listing_that_fails_leaves_the_reference(rig, first, uploader, link):
    rig.faults.append(Fault("entries", error=Unavailable.of("no route")))
    commit = await uploader.upload(link("e-2"))
    assert objects(commit)["e-2/frozen"] == f"{first.checkpoint}/e-1/frozen"


async def test_copies_that_take_too_long_leave_the_reference(rig, first, link):
    rig.settings = msgspec.structs.replace(rig.settings, copy_seconds=0.05)
    rig.faults.append(Fault("copy", wait=asyncio.Event()))
    commit = await rig.uploader().upload(link("e-2"))
    assert objects(commit)["e-2/frozen"] == f"{first.checkpoint}/e-1/frozen"


@pytest.mark.parametrize("damage", [{"corrupt": 7}, {"truncate": 5}])
async def test_a_damaged_copy_is_replaced_by_the_file(rig, first, uploader, link, damage):
    rig.faults.append(Fault("copy", **damage))
    result = await uploader.send(link("e-2"))
    place = f"{result.folder}/e-2/frozen"
    assert objects(result)["e-2/frozen"] == place
    assert (result.sent, result.referenced) == (6000, 0)
    assert rig.content.objects[f"base/run/{place}"] == FROZEN


@pytest.mark.parametrize("damage", ["gone", "shorter"])
async def test_a_source_that_is_not_what_the_commit_says_is_not_listed(rig, first, uploader, link, damage):
    rig.store.check = lambda before: None  # here it is the test that breaks a commit
    source = f"base/run/{first.checkpoint}/e-1/frozen"
    if damage == "gone":
        del rig.content.objects[source]
    else:
        rig.content.objects[source] = FROZEN[:-1]
    result = await uploader.send(link("e-2"))
    place = f"{result.folder}/e-2/frozen"
    assert objects(result)["e-2/frozen"] == place
    assert rig.content.objects[f"base/run/{place}"] == FROZEN


async def test_an_object_that_is_there_is_never_replaced_by_a_copy(rig, first, uploader, link):
    second = await uploader.send(link("e-2"))  # and never commits it
    place = f"base/run/{second.folder}/e-2/frozen"
    calls, before = len(copied(rig)), rig.content.objects[place]
    again = await rig.uploader("two").upload(link("e-2"))
    assert again.checkpoint == second.folder
    assert len(copied(rig)) == calls
    assert rig.content.objects[place] is before


async def test_a_restarted_worker_keeps_what_was_copied(rig, first, link):
    held = link("e-2")
    rig.faults.append(Fault("begin", "*/head", times=9, error=Unavailable.of("no route")))
    with pytest.raises(Unavailable):
        await rig.uploader().send(held)
    rig.faults.clear()
    result = await rig.uploader().send(held)
    assert objects(result)["e-2/frozen"] == f"{result.folder}/e-2/frozen"
    assert len(copied(rig)) == 1


async def test_copies_survive_the_removal_of_their_source(rig, first, uploader, link):
    collector = rig.collector()
    second = await uploader.upload(link("e-2"))
    removed = await collector.remove(1)
    assert [commit.sequence for commit in removed.commits] == [1]
    assert rig.store.bytes_of(second)["e-2/frozen"] == FROZEN
    assert not any(key.startswith(f"base/run/{first.checkpoint}/") for key in rig.content.objects)
