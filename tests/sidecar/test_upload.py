import asyncio
import hashlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed, Unavailable
from podferry.sidecar.detector import gather
from podferry.sidecar.pin import Pins
from podferry.sidecar.snapshot import Identity
from podferry.sidecar.upload import Reading, Uploader
from podferry.storage.memory import Fault

reusing = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def uploader(rig):
    return Uploader(rig.committer(), chunk_bytes=1024, attempts=3)


@pytest.fixture
def pin(rig):
    pins = Pins(rig.pins)
    return lambda name: pins.pin(gather(rig.root)[1][name], rig.root, 1.0)


def reading(path, chunk=1000):
    return Reading(path, Identity.of(path.stat()), chunk)


@reusing
@given(st.integers(0, 3001))
def test_the_body_is_the_file_in_chunks(tmp_path, size):
    path = tmp_path / "w"
    path.write_bytes(os.urandom(size))
    sha256 = hashlib.sha256()
    one = reading(path)
    body = list(one.body(one.fingerprint(), sha256))
    assert b"".join(body) == path.read_bytes()
    assert sha256.digest() == hashlib.sha256(path.read_bytes()).digest()
    assert all(len(chunk) <= 1000 for chunk in body)


@reusing
@given(st.integers(0, 2999), st.booleans())
def test_the_last_chunk_of_another_content_is_never_given_out(tmp_path, at, same_time):
    path = tmp_path / "w"
    path.write_bytes(b"1" * 3000)
    one = reading(path)
    fingerprint = one.fingerprint()
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"2")
    os.utime(path, ns=(0, before.st_mtime_ns if same_time else before.st_mtime_ns + 1))
    given_out = []
    with pytest.raises(Changed):
        given_out.extend(one.body(fingerprint, hashlib.sha256()))
    assert len(b"".join(given_out)) < 3000


def test_a_file_that_is_no_longer_what_was_held_has_no_fingerprint(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"1")
    one = reading(path)
    path.write_bytes(b"22")
    with pytest.raises(Changed, match="while it was being read"):
        one.fingerprint()


async def test_every_kind_of_file_arrives_whole(rig, uploader, pin):
    contents = {"s/empty": b"", "s/small": b"1", "s/chunk": b"2" * 1024, "s/large": os.urandom(5000)}
    for name, data in contents.items():
        rig.write(name, data)
    commit = await uploader.upload(pin("s"))
    assert rig.store.bytes_of(commit) == contents
    assert [file.name for file in commit.files] == sorted(contents)
    assert commit.checkpoint.startswith("s-")


async def test_data_goes_before_the_commit_and_the_hint_after_it(rig, uploader, pin):
    rig.write("s/w", b"1")
    commit = await uploader.upload(pin("s"))
    written = [name for call, name in rig.content.calls if call == "write"]
    private = "run/.podferry"
    data = f"run/{commit.checkpoint}/s/w"
    assert written == [data, f"{private}/commits/000000000001.json", f"{private}/latest.json"]


async def test_a_change_between_two_files_commits_neither_version(rig, uploader, pin):
    rig.write("s/a", b"1" * 3000)
    rig.write("s/b", b"1" * 3000)
    pinned = pin("s")
    rig.store.gated = "s/a"
    upload = asyncio.create_task(uploader.upload(pinned))
    await rig.until(rig.store.reached.is_set)
    rig.write("s/b", b"2" * 3000)
    rig.store.go.set()
    with pytest.raises(Changed):
        await upload
    assert rig.store.commits() == []


async def test_the_same_content_is_sent_and_committed_once(rig, uploader, pin):
    rig.write("s/w", b"1")
    first = await uploader.upload(pin("s"))
    sent = len(rig.content.calls)
    assert await uploader.upload(pin("s")) == first
    again = Uploader(rig.committer("two"), chunk_bytes=1024, attempts=3)
    assert await again.upload(pin("s")) == first
    assert {call for call, _ in rig.content.calls[sent:]} <= {"children", "read", "stat"}


async def test_content_whose_objects_have_gone_is_sent_and_committed_anew(rig, uploader, pin, monkeypatch):
    rig.write("s/w", b"1")
    first = await uploader.upload(pin("s"))
    del rig.content.objects[f"base/run/{first.checkpoint}/s/w"]
    second = await uploader.upload(pin("s"))
    assert (second.sequence, second.checkpoint) == (2, first.checkpoint)
    assert rig.store.bytes_of(second) == {"s/w": b"1"}


async def test_a_temporary_failure_is_tried_again(rig, uploader, pin):
    rig.write("s/w", b"1" * 3000)
    rig.faults.append(Fault("write", "*/s/w", times=2, error=Unavailable.of("no route")))
    assert rig.store.bytes_of(await uploader.upload(pin("s"))) == {"s/w": b"1" * 3000}


async def test_a_store_that_stays_away_commits_nothing(rig, uploader, pin):
    rig.write("s/w", b"1")
    rig.faults.append(Fault("write", times=3, error=Unavailable.of("no route")))
    with pytest.raises(Unavailable):
        await uploader.upload(pin("s"))
    assert rig.store.commits() == []
    assert (await uploader.upload(pin("s"))).sequence == 1
