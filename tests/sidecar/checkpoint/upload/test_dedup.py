from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.errors import AccessDenied, FormatTooNew
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.memory.store import Fault
from tests.support.uploads import sent


@pytest.fixture(autouse=True)
def no_copies(rig):
    rig.settings = msgspec.structs.replace(rig.settings, copy_bytes=0)


async def test_what_has_not_changed_is_referenced(rig, uploader, link):
    rig.write("e-1/frozen", b"f" * 3000)
    rig.write("e-1/head", b"1" * 3000)
    first = await uploader.upload(link("e-1"))
    counters = UploadCounters()
    # A new worker finds the newest commit at the destination, its own process knows it from before.
    for number, one in ((2, uploader), (3, rig.uploader(counters=counters))):
        rig.write(f"e-{number}/frozen", b"f" * 3000)
        rig.write(f"e-{number}/head", b"%d" % number * 3000)
        calls = len(rig.content.calls)
        commit = await one.upload(link(f"e-{number}"))
        assert {file.name: file.object for file in commit.files} == {
            f"e-{number}/frozen": f"{first.checkpoint}/e-1/frozen",
            f"e-{number}/head": f"{commit.checkpoint}/e-{number}/head",
        }
        assert not any("frozen" in name for name in sent(rig, calls))
    assert (counters.sent, counters.referenced) == (3000, 3000)


@pytest.mark.parametrize("damage", ["gone", "other size"])
async def test_an_object_is_referenced_only_while_it_exists(rig, uploader, link, damage):
    rig.store.check = lambda before: None  # here it is the test that breaks a commit
    rig.write("e-1/frozen", b"f" * 3000)
    first = await uploader.upload(link("e-1"))
    key = f"base/run/{first.checkpoint}/e-1/frozen"
    rig.write("e-2/frozen", b"f" * 3000)
    rig.write("e-2/head", b"2" * 3000)
    rig.store.gated = "e-2/head"  # it goes while the rest is sent
    upload = asyncio.create_task(uploader.send(link("e-2")))
    await rig.until(rig.store.reached.is_set)
    del rig.content.objects[key]
    if damage == "other size":
        rig.content.objects[key] = b"f" * 2999
    rig.store.go.set()
    result = await upload
    assert [file.object for file in result.files] == [
        f"{result.folder}/e-2/frozen",
        f"{result.folder}/e-2/head",
    ]
    assert (result.sent, result.referenced) == (6000, 0)
    assert rig.content.objects[f"base/run/{result.folder}/e-2/frozen"] == b"f" * 3000


@pytest.mark.parametrize("error", [AccessDenied.of("not yours"), FormatTooNew.of("later")])
async def test_commits_that_cannot_be_read_are_not_referenced(rig, uploader, link, error):
    rig.write("e-1", b"f" * 3000)
    await uploader.upload(link("e-1"))
    rig.write("e-2", b"f" * 3000)
    rig.faults.append(Fault("read", "*/commits/*", error=error, times=9))
    result = await rig.uploader("two").send(link("e-2"))
    assert (result.sent, result.referenced) == (3000, 0)


async def test_what_is_known_to_be_damaged_is_not_referenced(rig, uploader, link):
    rig.write("e-1/frozen", b"f" * 3000)
    rig.write("e-1/head", b"1" * 3000)
    first = await uploader.upload(link("e-1"))
    uploader._committer.content.damaged = {f"{first.checkpoint}/e-1/frozen"}
    rig.write("e-2/frozen", b"f" * 3000)
    rig.write("e-2/head", b"1" * 3000)
    commit = await uploader.upload(link("e-2"))
    assert [file.object for file in commit.files] == [
        f"{commit.checkpoint}/e-2/frozen",
        f"{first.checkpoint}/e-1/head",
    ]
    assert not await uploader._dedup.exists(f"{first.checkpoint}/e-1/frozen", 3000)
