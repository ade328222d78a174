"""New content under an old identity becomes a new version."""

import asyncio
import mmap
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.pipeline.content_recheck import ContentRecheck
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.checkpoint.pipeline.suspect_files import SuspectFiles
from podferry.sidecar.runtime.file_identity import FileIdentity
from tests.support.file_openers import MAPS, opener
from tests.support.patience import PATIENCE

ONE, TWO = b"1" * 5000, b"2" * 5000
NAME = "last.bin"


def keep_identity(path, change):
    """Change a file and set its times back."""
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert FileIdentity.of(path.stat()) == FileIdentity.of(before)


def patch(path):
    with path.open("r+b") as file:
        file.write(TWO)


def write_through_mapping(path):
    """What np.memmap does."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = TWO


def copy_over(path):
    """What `cp -p` does."""
    path.write_bytes(TWO)


changes = pytest.mark.parametrize("change", [patch, write_through_mapping, copy_over])


def contents(rig):
    return [rig.store.bytes_of(commit)[NAME] for commit in rig.store.commits()]


@changes
async def test_new_content_with_the_old_identity_is_a_new_version(any_rig, change):
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, change)
        assert (await pipeline.flush(PATIENCE)).durable
        await any_rig.committed(2)
    assert contents(any_rig) == [ONE, TWO]


@changes
async def test_of_a_restored_file_too(any_rig, change):
    path = any_rig.write(NAME, ONE)
    async with any_rig.running():
        (commit,) = await any_rig.committed(1)
    shutil.rmtree(any_rig.control)  # another pod
    pipeline = any_rig.pipeline()
    pipeline.mark_restored(Restored(fingerprints={file.name: file.xxh128 for file in commit.files}))
    keep_identity(path, change)
    async with any_rig.running(pipeline=pipeline):
        await any_rig.committed(2)
    assert contents(any_rig) == [ONE, TWO]


@changes
async def test_while_no_worker_ran(any_rig, change):
    path = any_rig.write(NAME, ONE)
    async with any_rig.running():
        await any_rig.committed(1)
    keep_identity(path, change)
    async with any_rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE)).durable
    assert contents(any_rig) == [ONE, TWO]


@changes
async def test_while_the_version_before_is_being_sent(any_rig, change, hold_sent):
    """After its last byte was read, so that the second pass cannot notice it."""
    sent, go_on = hold_sent()
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        await sent.wait()
        keep_identity(path, change)
        go_on.set()
        assert (await pipeline.flush(PATIENCE)).durable
        await any_rig.committed(2)
    assert contents(any_rig) == [ONE, TWO]


async def test_through_a_mapping_that_stays_open(any_rig):
    any_rig.open_files = OpenFiles(sees_writers=True)
    path = any_rig.write(NAME, ONE)
    async with any_rig.running():
        with opener(path, MAPS), path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            await any_rig.committed(1)
            before = path.stat()
            mapped[:] = TWO
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            await any_rig.committed(2)
    assert contents(any_rig) == [ONE, TWO]


async def test_what_was_not_changed_is_read_and_not_committed_again(any_rig):
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, lambda path: path.write_bytes(ONE))
        path.chmod(0o600)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert contents(any_rig) == [ONE]


async def test_at_the_end_even_without_any_sign(any_rig, monkeypatch):
    """Polling on tmpfs: a store through a mapping changes neither of the times."""
    monkeypatch.setattr(SuspectFiles, "find", lambda suspects, durable: {})
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, write_through_mapping)
        assert (await pipeline.flush(PATIENCE)).durable
        assert contents(any_rig) == [ONE]
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert contents(any_rig) == [ONE, TWO]


async def test_at_the_end_what_was_being_sent_then_is_read_too(any_rig, hold_sent, monkeypatch):
    sent, go_on = hold_sent()
    monkeypatch.setattr(SuspectFiles, "find", lambda suspects, durable: {})
    monkeypatch.setattr(SuspectFiles, "release", lambda suspects, hold: hold.release() or frozenset())
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        await sent.wait()
        keep_identity(path, write_through_mapping)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, final=True))
        await any_rig.until(lambda: pipeline._tracker.finished_scan)
        go_on.set()
        assert (await flush).durable
    assert contents(any_rig) == [ONE, TWO]


async def test_at_the_end_only_for_a_share_of_the_time(any_rig):
    async with any_rig.running() as pipeline:
        any_rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        pipeline._recheck.look_at_the_end(0.0)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
        assert pipeline._tracker.rereading == {}


async def test_what_may_have_changed_is_neither_durable_nor_evicted(any_rig, monkeypatch):
    """Until it has been read."""
    reached, release = asyncio.Event(), asyncio.Event()
    fingerprint = ContentRecheck._fingerprint

    async def slow(recheck, *args):
        reached.set()
        await release.wait()
        return await fingerprint(recheck, *args)

    monkeypatch.setattr(ContentRecheck, "_fingerprint", slow)
    any_rig.keep_local, any_rig.settings = (
        1,
        msgspec.structs.replace(any_rig.settings, eviction_threshold=0.0),
    )
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, patch)
        answer = await pipeline.flush(3.0)
        assert (answer.durable, answer.pending) == (False, ("last",))
        assert answer.problems[0].what == "last is read again"
        any_rig.write("newer.bin", ONE)
        await any_rig.committed(2)
        assert path.exists()
        release.set()
        assert (await pipeline.flush(PATIENCE)).durable
    assert any_rig.store.bytes_of(any_rig.store.commits()[-1]) == {NAME: TWO}


async def test_a_changed_version_needs_another_mark(any_rig):
    async with any_rig.running() as pipeline:
        path = any_rig.write(NAME, ONE)
        await pipeline.mark("last")
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, patch)
        assert (await pipeline.flush(PATIENCE)).durable
        assert pipeline._detector.marks == {}
    assert contents(any_rig) == [ONE, TWO]


async def test_an_unreadable_file_stops_nothing(rig, monkeypatch):
    async with rig.running() as pipeline:
        path = rig.write(NAME, ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        keep_identity(path, patch)
        monkeypatch.setattr(Path, "open", refuse)
        assert (await pipeline.flush(PATIENCE)).durable
        monkeypatch.undo()
        keep_identity(path, lambda path: path.write_bytes(b"3" * 5000))
        assert (await pipeline.flush(PATIENCE)).durable
    assert contents(rig) == [ONE, b"3" * 5000]


def refuse(path, *args, **options):
    raise PermissionError(13, "Permission denied", str(path))


async def test_a_flush_asks_at_once_for_files_that_are_still_mapped(rig):
    """What was written through the mapping before the call is durable after it."""
    rig.settings = msgspec.structs.replace(rig.settings, rescan_seconds=PATIENCE)
    rig.open_files = OpenFiles(sees_writers=True)
    async with rig.running() as pipeline:
        path = rig.write(NAME, ONE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            for number in range(3):
                mapped[:] = b"%d" % number * len(ONE)  # only the first one touches the times
                assert (await pipeline.flush(PATIENCE)).durable
                assert contents(rig)[-1] == mapped[:]


async def test_a_flush_during_an_upload_asks_once_it_is_done(rig, hold_sent):
    rig.settings = msgspec.structs.replace(rig.settings, rescan_seconds=PATIENCE)
    rig.open_files = OpenFiles(sees_writers=True)
    async with rig.running() as pipeline:
        rig.write("before.bin", ONE)
        assert (await pipeline.flush(PATIENCE)).durable
        sent, go_on = hold_sent()
        path = rig.write(NAME, ONE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = b"0" * len(ONE)  # later writes touch no time
            await sent.wait()
            mapped[:] = TWO
            flush = asyncio.create_task(pipeline.flush(PATIENCE))
            await rig.until(lambda: pipeline._tracker.finished_scan == 2)
            go_on.set()
            assert (await flush).durable
            assert rig.store.bytes_of(rig.store.commits()[-1])[NAME] == TWO
