import asyncio

import msgspec
import pytest

from podferry.contract.errors import AccessDenied, NotFound, Refused
from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.status import CheckpointStatus, Status
from podferry.sidecar.checkpoint.pipeline import restore_plan
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import Tuning
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from podferry.storage.memory.store import CONTENTS, Fault


@pytest.fixture
def work(any_rig, monkeypatch):
    """A checkpoint job over the rig's directories and store; keywords replace the spec's."""
    monkeypatch.setitem(CONTENTS, "rig", any_rig.content)

    def make(**changes):
        spec = msgspec.structs.replace(CheckpointSpec("memory://rig/base", "/seen"), **changes)
        directories = Directories(any_rig.control, checkpoints=any_rig.root, holds=any_rig.holds)
        tuning = Tuning(checkpoint=any_rig.settings, polling=any_rig.polling)
        config = AgentConfig(FerrySpec(checkpoints=spec, lineage="run"), directories, tuning=tuning)
        return CheckpointJob(spec, config, Journal(any_rig.control), AgentState(Status()))

    return make


async def life(work, rig, *names):
    """Plan, restore, and run until all that the trainer writes is durable; returns what it resumed from."""
    await work.restore(await work.plan())
    pipeline = await work.start(Durations())
    task = asyncio.create_task(pipeline.run())
    for name in names:
        rig.write(name, name.encode() * 2000)
    assert (await pipeline.flush(8)).durable
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    pipeline._detector._watch.close()
    return work.restored and work.restored.name


async def test_a_pod_resumes_from_the_previous_pods_newest_checkpoint(any_rig, work):
    first = work()
    assert first.summary().endswith("training starts from the beginning")
    assert await life(first, any_rig, "epoch-1.bin", "epoch-2/w.bin") is None
    newest = any_rig.store.commits()[-1].name
    for path in sorted(any_rig.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (any_rig.control / "journal.json").unlink()
    second = work()
    assert await life(second, any_rig) == newest
    assert f"resuming from {newest}" in second.summary()
    assert await life(second, any_rig, "epoch-3.bin") == newest
    await any_rig.committed(3)


async def test_a_missing_directory_is_refused_with_the_command_that_makes_it(any_rig, work):
    any_rig.root.rmdir()
    with pytest.raises(Refused, match="mkdir -p"):
        await work().plan()


async def test_plan_fails_if_the_destination_is_not_writable(any_rig, work):
    any_rig.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await work().plan()


async def test_plan_fails_if_a_required_checkpoint_is_missing(work):
    with pytest.raises(NotFound):
        await work(restore="latest").plan()


async def test_never_restores_nothing(any_rig, work):
    await life(work(), any_rig, "epoch-1.bin")
    (any_rig.root / "epoch-1.bin").unlink()
    assert await life(work(restore="never"), any_rig) is None
    assert list(any_rig.root.iterdir()) == []


async def test_only_files_that_are_not_there_yet_need_space(any_rig, work, monkeypatch):
    await life(work(), any_rig, "epoch-1.bin")
    monkeypatch.setattr(restore_plan, "measure", lambda directory: Capacity(volume_bytes=100))
    await work().plan()  # an earlier start of the worker has brought it
    (any_rig.root / "epoch-1.bin").unlink()
    with pytest.raises(Refused, match="larger than its volume"):
        await work().plan()


def test_the_status_shows_the_destination(work):
    made = work()
    assert made._state.status.checkpoints == CheckpointStatus("memory://rig/base", "/seen", "run")
