"""The end of a pod: the newest checkpoint is sent first, and sequences still show ages."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import Unavailable
from podferry.sidecar.checkpoint.pipeline import pipeline as pipeline_module
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

BIG = 8 * 1024
"""Bytes: eight parts of the rig's."""


def steps(rig):
    return [commit.step for commit in rig.store.commits()]


async def held(rig, pipeline, count):
    """Wait until `count` versions are held; the store receives none of them yet."""
    await rig.until(lambda: len(pipeline._queue.versions()) == count)


async def backlog(rig, pipeline, count):
    """Write `count` checkpoints, of which the first stays in the middle of its upload."""
    for step in range(1, count + 1):
        rig.write(f"step-{step}.bin", b"%d" % step * BIG)
        await held(rig, pipeline, step)
    await rig.until(rig.store.reached.is_set)


async def test_the_newest_is_sent_first_and_sequences_show_ages(rig):
    rig.store.gated = "step-1.bin"
    order = []
    async with rig.running() as pipeline:
        await backlog(rig, pipeline, 4)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        for count in range(1, 4):
            await rig.committed(count)
            order.append(min(set(steps(rig)) - set(order)))
        rig.store.go.set()
        assert (await flush).durable
    assert order == [4, 3, 2], "in the order in which they became durable"
    assert steps(rig) == [1, 2, 3, 4], "in the order of their numbers"
    assert (await rig.restored())[0] == "step-4"


async def test_what_was_overtaken_is_not_sent_again(rig):
    rig.store.gated = "step-1.bin"
    async with rig.running() as pipeline:
        await backlog(rig, pipeline, 2)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await rig.committed(1)
        rig.store.go.set()
        assert (await flush).durable
        sent = pipeline._dependencies.counters.sent
    in_flight = rig.settings.parts_in_flight * rig.settings.part_bytes
    assert sent <= 2 * BIG + in_flight


async def test_a_worker_that_is_killed_between_two_of_a_drain_keeps_the_order(rig):
    rig.store.gated = "step-1.bin"
    async with rig.running() as pipeline:
        await backlog(rig, pipeline, 3)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True))
        await rig.committed(1)
        rig.faults.append(Fault("*", "*", error=Unavailable.of("killed"), times=1000))
        flush.cancel()
        await asyncio.gather(flush, return_exceptions=True)
    assert steps(rig) == [3]
    rig.faults.clear()
    rig.store.gated = ""
    rig.store.go.set()
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert steps(rig) == [1, 2, 3]


async def test_without_a_free_sequence_an_older_version_is_abandoned_and_logged(rig):
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * 100)
        await rig.committed(1)
        # As if the record of the room had been lost: number 1 is taken by a newer one.
        pipeline._dependencies.journal.checkpoints.sequences = {99: 1}
        with capture_logs() as logs:
            rig.write("step-2.bin", b"2" * 100)
            assert (await pipeline.flush(PATIENCE)).durable
    assert steps(rig) == [1]
    assert any(line["event"] == "abandoned" and line["name"] == "step-2" for line in logs)


@pytest.mark.parametrize("ending", [True, False])
async def test_checkpoints_written_while_the_pod_is_ending_are_uploaded(any_rig, ending):
    async with any_rig.running() as pipeline:
        any_rig.write("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE, ending=ending)).durable
        any_rig.write("step-2.bin", b"2" * BIG)
        assert (await pipeline.flush(PATIENCE, ending=ending, final=True)).durable
    assert steps(any_rig) == [1, 2]


async def test_a_fenced_agent_commits_nothing_more_and_names_its_successor(rig):
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * 100)
        await rig.committed(1)
        other = rig.committer("two")
        standing = rig.store.commits()[0]
        files = tuple(msgspec.structs.replace(file, name="x") for file in standing.files)
        await other.commit("step-5", "step-5-x", files)
        rig.write("step-2.bin", b"2" * 100)
        answer = await pipeline.flush(PATIENCE)
        assert not answer.durable
        assert answer.hopeless
        assert "two" in str(answer.problems[0])
        assert pipeline._status.fenced
        rig.write("step-3.bin", b"3" * 100)
        answer = await pipeline.flush(PATIENCE)
        assert (answer.hopeless, answer.pending) == (True, ("step-2", "step-3"))
        assert len(answer.problems) == 1, "the reason of both"
    assert [commit.agent_id for commit in rig.store.commits()] == ["one", "two"]


@pytest.fixture
def slow_removal(rig):
    """Deletions at the destination wait for this event."""
    go = asyncio.Event()
    rig.keep_remote = 1
    rig.faults.append(Fault("delete", "*", times=10_000, wait=go))
    return go


def deletions(rig):
    return [name for call, name in rig.content.calls if call == "delete"]


async def test_a_slow_removal_delays_no_checkpoint(rig, slow_removal):
    async with rig.running() as pipeline:
        for step in range(1, 5):
            rig.write(f"step-{step}.bin", b"%d" % step * BIG)
            assert (await pipeline.flush(PATIENCE)).durable
            assert [done.step for done in pipeline._status.durable] == list(range(1, step + 1))
        await rig.until(lambda: deletions(rig))
        assert steps(rig) == [1, 2, 3, 4]
        slow_removal.set()
        await rig.until(lambda: steps(rig) == [4])
    assert (await rig.restored())[0] == "step-4"


async def test_the_end_of_a_training_waits_a_little_for_the_removal(rig, slow_removal, monkeypatch):
    monkeypatch.setattr(pipeline_module, "SETTLE_SECONDS", PATIENCE)
    slow_removal.set()
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
        rig.write("step-2.bin", b"2" * BIG)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert steps(rig) == [2]


async def test_a_removal_that_is_cut_off_leaves_complete_commits(rig, slow_removal, monkeypatch):
    monkeypatch.setattr(pipeline_module, "SETTLE_SECONDS", 0.01)
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
        rig.write("step-2.bin", b"2" * BIG)
        assert (await pipeline.flush(PATIENCE, final=True, succeeded=True)).durable
    assert steps(rig) == [1, 2]
    slow_removal.set()
    assert (await rig.restored())[0] == "step-2"
    monkeypatch.setattr(pipeline_module, "SETTLE_SECONDS", PATIENCE)
    async with rig.running() as pipeline:
        rig.write("step-3.bin", b"3" * BIG)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert steps(rig) == [2, 3]  # step 3 is doubtful: the newest sure one stays


async def test_a_pod_that_ends_does_not_wait_for_the_removal(rig, slow_removal, monkeypatch):
    monkeypatch.setattr(pipeline_module, "SETTLE_SECONDS", 2 * PATIENCE)
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
        rig.write("step-2.bin", b"2" * BIG)
        async with asyncio.timeout(PATIENCE):
            assert (await pipeline.flush(PATIENCE, final=True, ending=True)).durable
    assert not slow_removal.is_set()
