import os

import pytest

from podferry.contract.errors import AccessDenied, Refused
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.state.durations import Durations
from podferry.storage.memory.store import Fault, MemoryStore
from podferry.storage.store import WriteMode
from tests.support.detector_bench import WHOLE
from tests.support.patience import PATIENCE


async def test_a_missing_directory_is_refused_with_the_command_that_makes_it(any_rig, work):
    any_rig.root.rmdir()
    with pytest.raises(Refused, match="mkdir -p"):
        await work().plan()


async def test_plan_fails_if_the_destination_is_not_writable(any_rig, work):
    any_rig.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await work().plan()


async def test_plan_fails_if_the_destination_ignores_the_condition_of_a_create(any_rig, work, monkeypatch):
    write = MemoryStore.write

    async def careless(self, name, body, mode=WriteMode.OVERWRITE):
        await write(self, name, body)

    monkeypatch.setattr(MemoryStore, "write", careless)
    with pytest.raises(Refused, match="replaces an object that it should only create"):
        await work().plan()


async def test_plan_may_be_repeated(work):
    """A worker that restarts before training finds the record of its first life."""
    await work().plan()
    await work().plan()


async def test_a_pod_that_only_restores_announces_nothing(any_rig, work):
    """Its announcement would hide the pod that writes."""
    made = work(read_only=True)
    plan = await made.plan()
    await made.restore(plan)
    assert any_rig.content.objects == {}
    assert made._retention(made._connect()) is None
    assert made.handover is None
    assert "from memory://rig/base/run, which rank 0 alone writes" in made.summary()


async def test_a_part_that_lacks_the_coordinators_file_is_named_with_the_remedy(any_rig, work):
    """A sharded save of several pods without `world`: nothing is missing here but the pods' number."""
    made = work(read_only=True)
    await made.restore(await made.plan())
    pipeline = await made.start(Durations())
    async with any_rig.running(pipeline=pipeline):
        any_rig.write("step-1/__1_0.distcp", b"1" * 100)
        await any_rig.until(lambda: "set podferry.io/world" in str(made._status.problems))
    assert made._status.pending == ["step-1"]


async def test_rank_0s_part_alone_is_not_committed_as_if_it_were_all(any_rig, work):
    """`.metadata` lists a shard that another pod has: resuming from this one would fail."""
    made = work()
    await made.restore(await made.plan())
    pipeline = await made.start(Durations())
    async with any_rig.running(pipeline=pipeline):
        any_rig.write("step-1/__0_0.distcp", b"0" * 100)
        any_rig.write("step-1/.metadata", b"__0_0.distcp __1_0.distcp")
        answer = await pipeline.flush(PATIENCE, final=True, succeeded=True)
    assert (answer.durable, answer.pending) == (False, ("step-1",))
    assert "step-1/__1_0.distcp, which is missing" in str(answer.problems[0])
    assert any_rig.store.commits() == []


def test_the_status_shows_the_destination(work):
    made = work()
    assert made._state.status.checkpoints == CheckpointStatus("memory://rig/base", "/seen", "run")


async def test_metrics_make_no_state_old(any_rig, work):
    """The agent before was killed after the commit of metrics, before that of an older state."""
    async with any_rig.running():
        any_rig.write("epoch_1.pkl", WHOLE)
        await any_rig.committed(1)
        any_rig.write("metrics.json", b"{}")
        await any_rig.committed(2)
    saved = any_rig.write("last.pkl", WHOLE)
    first, metrics = ((any_rig.root / name).stat().st_mtime_ns for name in ("epoch_1.pkl", "metrics.json"))
    os.utime(saved, ns=(0, (first + metrics) // 2))
    made = work(restore="never")
    await made.restore(await made.plan())
    pipeline = await made.start(Durations())
    async with any_rig.running(pipeline=pipeline):
        await any_rig.until(lambda: "last" in [commit.name for commit in any_rig.store.commits()])
