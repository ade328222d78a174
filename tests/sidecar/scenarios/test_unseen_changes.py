"""What a worker has not seen itself, and what the agent itself did to the files, proves nothing."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress

import pytest

from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import LINKED
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

WHOLE = {"a.bin": 300, "b.bin": 9000}


class Death(BaseException):
    """Ends a worker as if killed."""


class FailingNote:
    """A note that cannot be written."""

    def __init__(self, error):
        self.error = error

    def write_bytes(self, _data):
        raise self.error


@pytest.fixture
def failing_note(monkeypatch):
    """Let the next note fail with an error, once all links are made."""

    def fail(error):
        real, left = HardlinkHolds._note, [error]
        monkeypatch.setattr(
            HardlinkHolds,
            "_note",
            lambda self, number: FailingNote(left.pop()) if left else real(self, number),
        )

    return fail


def was_linked(path):
    return path.stat().st_ctime_ns > path.stat().st_mtime_ns


def was_later(path, other):
    return path.stat().st_mtime_ns > other.stat().st_mtime_ns


async def save(rig, step, sizes):
    for name, size in sizes.items():
        rig.write(f"step-{step}/{name}", os.urandom(size))


async def two_sure(rig):
    for step in (1, 2):
        await save(rig, step, WHOLE)
        await rig.committed(step)


async def test_a_torn_save_that_could_not_be_held_at_first_is_doubtful(rig, failing_note):
    async with rig.running() as pipeline:
        await two_sure(rig)
        failing_note(OSError(errno.ENOSPC, "No space left on device"))
        await save(rig, 3, {"a.bin": 300, "b.bin": 4096})
        await pipeline.flush(PATIENCE, final=True)
        assert (await rig.committed(3))[2].doubts


async def test_a_torn_save_whose_worker_was_killed_while_it_linked_is_doubtful(rig, failing_note):
    with suppress(BaseExceptionGroup, Death):
        async with rig.running():
            await two_sure(rig)
            failing_note(Death())
            await save(rig, 3, {"a.bin": 300, "b.bin": 4096})
            await rig.until(lambda: was_linked(rig.root / "step-3/b.bin"))
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert rig.store.commits()[2].doubts


async def test_what_an_earlier_agent_linked_is_doubtful(rig, failing_note):
    with suppress(BaseExceptionGroup, Death):
        async with rig.running():
            failing_note(Death())
            torn = rig.write("step-1.bin", os.urandom(4096))
            await rig.until(lambda: was_linked(torn))
    for directory in (rig.control, rig.holds):
        shutil.rmtree(directory)
    agent = rig.pipeline()
    agent.begin()
    async with rig.running(pipeline=agent) as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert (await rig.committed(1))[0].doubts


async def test_a_file_that_may_have_been_mapped_while_no_worker_ran_is_doubtful(rig):
    rig.open_files = OpenFiles(sees_writers=True)
    async with rig.running():
        await two_sure(rig)
    await save(rig, 3, WHOLE)
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert {doubt.reason.partition(" ")[2] for doubt in rig.store.commits()[2].doubts} == {
        "had its size a while before it was closed: it may have been mapped"
    }


async def test_a_rename_while_no_worker_ran_is_seen(rig):
    async with rig.running():
        await two_sure(rig)
    await save(rig, 3, {"c.bin": 10})
    written = rig.write("step-4.tmp", b"raw")
    probe = rig.base / "probe"
    await rig.until(lambda: probe.write_bytes(b"") or was_later(probe, written))  # by the file system's clock
    (rig.root / "step-3").rename(rig.root / "step-5")
    written.rename(rig.root / "other-4.bin")
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert [bool(commit.doubts) for commit in rig.store.commits()[2:]] == [False, False]


async def test_what_an_earlier_run_left_shows_not_what_is_whole(rig):
    rig.open_files = OpenFiles(sees_writers=True)
    rig.write("step-1/a.bin", b"torn before the next file")
    agent = rig.pipeline()
    agent._registry.ignore(scan_checkpoints(rig.root)[1].values())
    async with rig.running(pipeline=agent) as pipeline:
        rig.write("step-2/a.bin", b"torn before the next file")
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert (await rig.committed(1))[0].doubts


async def test_what_was_proven_while_it_waited_stays_proven(rig):
    rig.faults.append(Fault(times=10**6, error=Unavailable.of("no route")))
    async with rig.running() as pipeline:
        for step in (1, 2):
            await save(rig, step, WHOLE)
            await rig.until(lambda step=step: len(pipeline._queue.versions()) == step)
        await rig.until(lambda: not pipeline._registry.in_state(*LINKED)[0].candidate.doubts)
    rig.faults.clear()
    async with rig.running():
        assert not (await rig.committed(2))[0].doubts
