"""What is called durable is committed, whatever the clock, an earlier worker or a trainer does meanwhile."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

BIG = 8 * 1024
HOUR = 3600.0


def steps(rig):
    return [commit.step for commit in rig.store.commits()]


async def test_a_clock_that_was_set_back_calls_nothing_durable(rig):
    ahead = HOUR
    rig.now = lambda: datetime.now(UTC).timestamp() + ahead
    async with rig.running() as pipeline:
        rig.replace("last.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
        ahead = 0.0
        rig.faults.append(Fault("write", "*/commits/*", times=1000, error=Unavailable.of("no route")))
        rig.replace("last.bin", b"2" * BIG)
        assert not (await pipeline.flush(0.5, final=True)).durable


async def test_a_clock_that_was_set_back_while_no_worker_ran_calls_nothing_durable(rig):
    ahead = HOUR
    rig.now = lambda: datetime.now(UTC).timestamp() + ahead
    async with rig.running() as pipeline:
        rig.replace("last.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
    ahead = 0.0
    rig.faults.append(Fault("write", "*/commits/*", times=1000, error=Unavailable.of("no route")))
    async with rig.running() as pipeline:
        rig.replace("last.bin", b"2" * BIG)
        assert not (await pipeline.flush(0.5, final=True)).durable


async def with_older_file(rig, name, *, newest):
    """A directory with an old file, and a newer commit of another agent."""
    old = rig.write(name, b"old" * 100)
    await rig.until(lambda: datetime.now(UTC).timestamp() > old.stat().st_mtime + 0.01)
    await rig.committer("zero").commit(newest, f"{newest}-x", ())
    pipeline = rig.pipeline()
    pipeline.ignore_older_than(rig.store.commits()[0])
    pipeline._detector._watch.close()
    return pipeline


async def test_an_ignored_checkpoint_stays_ignored_for_the_next_worker(rig):
    await with_older_file(rig, "epoch-1.bin", newest="epoch-2")
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert steps(rig) == [2], "a killed worker must not put an old checkpoint after the newest"


async def test_another_version_of_the_newest_is_not_ignored(rig):
    pipeline = await with_older_file(rig, "last.bin", newest="last")
    assert "last" not in pipeline._registry.settled()


async def test_what_is_newer_than_the_newest_committed_files_is_not_ignored(rig):
    """It was queued behind the newest commit when its agent was killed."""
    rig.write("step-5.bin", b"5" * 100)
    await asyncio.sleep(0.02)
    best = rig.write("best.bin", b"best")
    await rig.until(lambda: datetime.now(UTC).timestamp() > best.stat().st_mtime + 0.01)
    await rig.committer("zero").commit("step-5", "step-5-x", ())
    pipeline = rig.pipeline()
    pipeline.ignore_older_than(rig.store.commits()[0])
    pipeline._detector._watch.close()
    assert "best" not in pipeline._registry.settled()


async def test_a_drain_reports_the_newest_durable_checkpoint(rig):
    rig.store.gated = "step-1.bin"
    async with rig.running() as pipeline:
        for step in (1, 2):
            rig.write(f"step-{step}.bin", b"%d" % step * BIG)
            await rig.until(lambda step=step: len(pipeline._queue.versions()) == step)
        await rig.until(rig.store.reached.is_set)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await rig.committed(1)
        rig.store.go.set()
        answer = await flush
    assert answer.last.name == "step-2"


async def test_a_new_checkpoint_while_older_ones_wait_costs_none_of_them(rig):
    rig.store.gated = "step-1.bin"
    async with rig.running() as pipeline:
        for step in (1, 2):
            rig.write(f"step-{step}.bin", b"%d" % step * BIG)
            await rig.until(lambda step=step: len(pipeline._queue.versions()) == step)
        await rig.until(rig.store.reached.is_set)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await rig.committed(1)
        rig.write("step-3.bin", b"3" * BIG)
        await rig.committed(2)
        rig.store.go.set()
        assert (await flush).durable
        assert (await pipeline.flush(PATIENCE)).durable
    assert steps(rig) == [1, 2, 3]


async def test_what_is_overtaken_while_it_is_committed_is_counted_once(rig):
    landed, go = asyncio.Event(), asyncio.Event()
    async with rig.running() as pipeline:
        committer = pipeline._dependencies.committer
        hint = committer._write_latest

        async def stuck(commit):
            if commit.step == 1 and not landed.is_set():
                landed.set()
                await go.wait()
            await hint(commit)

        committer._write_latest = stuck
        rig.write("step-1.bin", b"1" * BIG)
        await landed.wait()
        rig.write("step-2.bin", b"2" * BIG)
        await rig.until(lambda: len(pipeline._queue.versions()) == 2)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await asyncio.sleep(0.05)
        go.set()
        assert (await flush).durable
        assert [one.step for one in pipeline._status.durable] == [1, 2]
    assert steps(rig) == [1, 2]


async def test_what_is_overtaken_while_it_is_released_is_counted_once(rig):
    releasing, go = asyncio.Event(), asyncio.Event()
    async with rig.running() as pipeline:
        forget = pipeline._dependencies.uploader.forget

        async def stuck(held):
            if not releasing.is_set():
                releasing.set()
                await go.wait()
            await forget(held)

        pipeline._dependencies.uploader.forget = stuck
        rig.write("step-1.bin", b"1" * BIG)
        await releasing.wait()
        rig.write("step-2.bin", b"2" * BIG)
        await rig.until(lambda: len(pipeline._queue.versions()) == 2)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await asyncio.sleep(0.05)
        go.set()
        assert (await flush).durable
        assert [one.step for one in pipeline._status.durable] == [1, 2]


async def test_a_commit_that_was_taken_in_before_a_kill_is_counted_once(rig):
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        pipeline._dependencies.uploader.forget = lambda held: (
            asyncio.Event().wait()
        )  # killed before the release
        await rig.until(lambda: pipeline._status.durable)
    async with rig.running() as pipeline:
        await rig.until(lambda: not pipeline._queue.versions())
        assert [one.step for one in pipeline._status.durable] == [1]


async def test_content_that_comes_back_is_the_newest_again(rig):
    """A trainer that keeps the best weights writes an earlier version of its file once more."""
    async with rig.running() as pipeline:
        for number, data in enumerate((b"a" * BIG, b"b" * BIG, b"a" * BIG), start=1):
            rig.replace("model.bin", data)
            await rig.until(lambda number=number: len(pipeline._status.durable) == number)
            assert (await pipeline.flush(PATIENCE)).durable
    assert await rig.restored() == ("model", {"model.bin": b"a" * BIG})


async def test_content_that_comes_back_is_the_newest_again_for_the_next_worker(rig):
    for number, data in enumerate((b"a" * BIG, b"b" * BIG, b"a" * BIG), start=1):
        async with rig.running() as pipeline:
            rig.replace("model.bin", data)
            await rig.until(lambda number=number, pipeline=pipeline: len(pipeline._status.durable) == number)
            assert (await pipeline.flush(PATIENCE)).durable
    assert await rig.restored() == ("model", {"model.bin": b"a" * BIG})


async def test_an_upload_avoids_a_removal_that_began_before_its_check(rig):
    """The same content is written again while the commit that had it is being removed."""
    async with rig.running() as pipeline:
        for step in (1, 2):
            rig.replace(f"step-{step}.bin", b"%d" % step * BIG)
            await rig.until(lambda step=step: len(pipeline._status.durable) == step)
    deleting = asyncio.Event()
    rig.faults.append(Fault("delete", "*step-1.bin", wait=deleting))
    removing = None
    async with rig.running() as pipeline:
        committer = pipeline._dependencies.uploader._committer
        find = committer.content.find

        async def meanwhile(*content):
            nonlocal removing
            if removing is None:
                removing = asyncio.create_task(GarbageCollector(committer.reader).remove(1))
                await rig.until(lambda: steps(rig) == [2])
            return await find(*content)

        committer.content.find = meanwhile
        commit = pipeline._dependencies.committer.commit

        async def later(*args, **options):
            deleting.set()
            await removing
            return await commit(*args, **options)

        pipeline._dependencies.committer.commit = later
        (rig.root / "step-1.bin").unlink()
        rig.replace("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    rig.store.check({})


@pytest.mark.parametrize("text", [b"epoch-2", b"/elsewhere/epoch-2.bin"])
async def test_a_pointer_alone_is_no_checkpoint_to_resume_from(rig, text):
    """Its trainer wrote it before the checkpoint that it names, or has removed that."""
    async with rig.running() as pipeline:
        rig.write("epoch-1.bin", b"1" * BIG)
        await rig.committed(1)
        rig.write("latest", text)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert (await rig.restored())[0] == "epoch-1"


async def test_a_small_checkpoint_that_is_called_like_a_pointer_is_committed(rig):
    async with rig.running() as pipeline:
        rig.write("checkpoint", b"\x80\x04\0\0weights.")
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert (await rig.restored())[0] == "checkpoint"


@pytest.mark.parametrize("final", [False, True])
async def test_what_changes_while_it_is_sent_is_not_called_durable(any_rig, final):
    any_rig.store.gated = "last.bin"
    async with any_rig.running() as pipeline:
        any_rig.write("last.bin", b"1" * BIG)
        await any_rig.until(any_rig.store.reached.is_set)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, final=final))
        await any_rig.until(lambda: pipeline._tracker.finished_scan)
        any_rig.write("last.bin", b"2" * BIG)
        any_rig.store.gated = ""
        any_rig.store.go.set()
        assert (await flush).durable
        assert [any_rig.store.bytes_of(commit) for commit in any_rig.store.commits()] == [
            {"last.bin": b"2" * BIG}
        ]


@pytest.mark.parametrize("final", [False, True])
async def test_what_changes_while_it_is_linked_is_not_called_durable(any_rig, monkeypatch, final):
    link, changed = os.link, []

    def changing(source, target, **options):
        if not changed:
            changed.append(any_rig.write("last.bin", b"2" * BIG))
        link(source, target, **options)

    monkeypatch.setattr(os, "link", changing)
    any_rig.write("last.bin", b"1" * BIG)
    async with any_rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=final)).durable
        assert len(any_rig.store.commits()) == 1
    assert changed


async def test_what_waits_to_be_linked_is_not_called_durable(rig):
    rig.settings = msgspec.structs.replace(rig.settings, quiet_seconds=0.05, quiet_seconds_no_close=0.05)
    releasing, go = asyncio.Event(), asyncio.Event()
    rig.store.gated = "first.bin"
    async with rig.running() as pipeline:
        rig.write("first.bin", b"1" * BIG)
        await rig.until(rig.store.reached.is_set)
        rig.replace("last.bin", b"2" * BIG)
        await rig.until(lambda: len(pipeline._queue.versions()) == 2)
        forget = pipeline._dependencies.uploader.forget

        async def stuck(held):
            if held.candidate.name == "last":
                releasing.set()
                await go.wait()
            await forget(held)

        pipeline._dependencies.uploader.forget = stuck
        pipeline._detector._settings = msgspec.structs.replace(
            rig.settings, quiet_seconds=60.0, quiet_seconds_no_close=60.0
        )
        rig.replace("last.bin", b"3" * BIG)
        rig.replace("next.bin", b"4" * BIG)
        await rig.until(lambda: "next" in pipeline._detector.not_ready)
        flush = asyncio.create_task(pipeline.flush(PATIENCE))
        await rig.until(lambda: pipeline._tracker.finished_scan)
        final = asyncio.create_task(pipeline.flush(PATIENCE, final=True))  # both are whole at once
        await releasing.wait()
        pipeline._tracker.report()  # as when another upload ends
        assert "next" in pipeline._status.pending
        go.set()
        rig.store.go.set()
        assert (await flush).durable
        assert (await final).durable
        assert {commit.name for commit in rig.store.commits()} == {"first", "last", "next"}
