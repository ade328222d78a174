"""A checkpoint that fails for good does not hold back those behind it, and never becomes the newest."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.storage.memory.store import Fault
from tests.support.checkpoint_rig import Rig
from tests.support.patience import PATIENCE

BIG = 8 * 1024
"""Bytes: eight parts of the rig's."""
NEVER = 3600.0
"""Seconds between retries of what is set apart, when a test wants none."""


def refuse(rig: Rig, pattern: str) -> Fault:
    """The store refuses an object for good, whoever asks."""
    fault = Fault("*", pattern, error=AccessDenied.of("the key may not write this name"), times=10_000)
    rig.faults.append(fault)
    return fault


def names(rig: Rig) -> list[str]:
    return [commit.name for commit in rig.store.commits()]


@pytest.fixture
def rig(any_rig: Rig) -> Rig:
    any_rig.settings = msgspec.structs.replace(any_rig.settings, set_apart_seconds=NEVER)
    return any_rig


async def save(rig: Rig, name: str) -> None:
    """Write a checkpoint and wait until it is committed."""
    count = len(rig.store.commits())
    rig.write(f"{name}.bin", name[-1:].encode() * BIG)
    await rig.committed(count + 1)


async def test_later_ones_go_on_and_the_one_that_failed_is_named(rig: Rig) -> None:
    refuse(rig, "*step-1-*/*")
    async with rig.running() as pipeline:
        with capture_logs() as logs:
            rig.write("step-1.bin", b"1" * BIG)
            await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
            await save(rig, "step-2")
            await save(rig, "step-3")
        assert names(rig) == ["step-2", "step-3"]
        await rig.until(lambda: pipeline._status.pending == ["step-1"])
        assert "may not write this name" in pipeline._status.problems[0].what
        answer = await pipeline.flush(PATIENCE, final=True)
    assert (answer.durable, answer.hopeless, answer.pending) == (False, True, ("step-1",))
    assert answer.last is not None
    assert answer.last.name == "step-3"
    (line,) = [one for one in logs if one["event"].startswith("set apart")]
    assert (line["name"], line["log_level"]) == ("step-1", "warning")


async def test_it_takes_a_number_below_those_that_went_ahead(rig: Rig) -> None:
    fault = refuse(rig, "*step-1-*/*")
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        await save(rig, "step-2")
        await save(rig, "step-3")
        rig.faults.remove(fault)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
        await rig.until(lambda: pipeline._status.set_apart == [])
    assert names(rig) == ["step-1", "step-2", "step-3"]
    restored = await rig.restored()
    assert restored is not None
    assert restored[0] == "step-3"


async def test_several_at_different_places_keep_the_order_of_their_ages(rig: Rig) -> None:
    faults = [refuse(rig, f"*step-{step}-*/*") for step in (1, 2, 4)]
    async with rig.running() as pipeline:
        for step in range(1, 7):
            rig.write(f"step-{step}.bin", b"%d" % step * BIG)
            await rig.until(
                lambda step=step: f"step-{step}" in [*pipeline._status.set_apart, *names(rig)]  # type: ignore[misc]
            )
        assert pipeline._status.set_apart == ["step-1", "step-2", "step-4"]
        sequences = pipeline._dependencies.journal.checkpoints.sequences
        assert len(sequences) <= 4, "one for each that waits, and the newest"
        for fault in faults:
            rig.faults.remove(fault)
        assert (await pipeline.flush(PATIENCE, ending=True)).durable
    assert names(rig) == [f"step-{step}" for step in range(1, 7)]


async def test_a_restarted_worker_keeps_its_place(rig: Rig) -> None:
    fault = refuse(rig, "*step-1-*/*")
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        await save(rig, "step-2")
    async with rig.running() as pipeline:
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        await save(rig, "step-3")
    rig.faults.remove(fault)
    async with rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert names(rig) == ["step-1", "step-2", "step-3"]


async def test_it_is_retried_at_its_own_pace(rig: Rig) -> None:
    rig.settings = msgspec.structs.replace(rig.settings, set_apart_seconds=0.02)
    fault = refuse(rig, "*step-1-*/*")
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        await save(rig, "step-2")
        rig.faults.remove(fault)
        await rig.committed(2)
        await rig.until(lambda: pipeline._status.pending == [])
    assert names(rig) == ["step-1", "step-2"]


async def test_a_newer_version_of_its_name_replaces_it(rig: Rig) -> None:
    fault = refuse(rig, "*last-*/*")
    async with rig.running() as pipeline:
        rig.replace("last.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["last"])
        rig.faults.remove(fault)
        rig.replace("last.bin", b"2" * BIG)
        await rig.committed(1)
        assert (await pipeline.flush(PATIENCE)).durable
        await rig.until(lambda: (pipeline._status.set_apart, pipeline._status.pending) == ([], []))
    assert list(rig.holds.iterdir()) == [], "its links are removed"


async def test_a_temporary_failure_still_keeps_the_order(rig: Rig) -> None:
    """A store that does not answer refuses nobody: the oldest goes first once it is back."""
    fault = Fault("*", "*step-1-*/*", error=Unavailable.of("no route"), times=10_000)
    rig.faults.append(fault)
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: bool(pipeline._status.problems))
        rig.write("step-2.bin", b"2" * BIG)
        await rig.until(lambda: pipeline._status.pending == ["step-1", "step-2"])
        assert (pipeline._status.set_apart, names(rig)) == ([], [])
        rig.faults.remove(fault)
        assert (await pipeline.flush(PATIENCE)).durable
    assert names(rig) == ["step-1", "step-2"]


async def test_a_refused_commit_that_took_effect_is_found_at_once(rig: Rig) -> None:
    error = AccessDenied.of("the answer was lost")
    rig.faults.append(Fault("write", "*/commits/*", error=error, after=True))
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        assert (await pipeline.flush(PATIENCE)).durable
        await rig.until(lambda: pipeline._status.set_apart == [])
    assert names(rig) == ["step-1"]


async def test_no_older_one_is_committed_while_it_is_unknown_whether_a_newer_one_is(rig: Rig) -> None:
    """Otherwise the older one would get the higher number."""
    fault = refuse(rig, "*step-1-*/*")
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        lost, unread = AccessDenied.of("the answer was lost"), AccessDenied.of("commits cannot be read")
        blocked = Fault("read", "*/commits/*", error=unread, times=10_000)
        rig.faults.extend([Fault("write", "*/commits/*", error=lost, after=True), blocked])
        rig.write("step-2.bin", b"2" * BIG)
        await rig.until(lambda: names(rig) == ["step-2"])
        await rig.until(lambda: pipeline._status.pending == ["step-1", "step-2"])
        rig.faults.remove(fault)
        pipeline._queue.retry_set_apart()
        await rig.until(lambda: any("unknown" in one.what for one in pipeline._status.problems))
        rig.faults.remove(blocked)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
    assert names(rig) == ["step-1", "step-2"]


async def test_at_the_end_it_is_tried_after_all_others(rig: Rig) -> None:
    fault = refuse(rig, "*step-1-*/*")
    rig.store.gated = "step-2-"
    async with rig.running() as pipeline:
        rig.write("step-1.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._status.set_apart == ["step-1"])
        rig.write("step-2.bin", b"2" * BIG)
        await rig.until(rig.store.reached.is_set)
        rig.faults.remove(fault)
        flush = asyncio.create_task(pipeline.flush(PATIENCE, ending=True, final=True))
        await rig.until(lambda: pipeline._queue.newest_first)
        assert names(rig) == []
        rig.store.go.set()
        assert (await flush).durable
        done = {one.name: one.durable_at for one in pipeline._status.durable}
    assert done["step-2"] <= done["step-1"]
    assert names(rig) == ["step-1", "step-2"]
