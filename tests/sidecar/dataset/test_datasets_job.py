"""Several datasets of one agent: planned together, brought in turn."""

import asyncio
import itertools

import pytest

from podferry.contract.errors import PermanentError, Refused, TemporaryError, Unavailable
from podferry.contract.spec import DatasetSpec, FerrySpec, Medium
from podferry.contract.status import Status
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import dataset_job as module
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.sidecar.dataset.datasets_job import DatasetsJob
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.sidecar.state.agent_state import AgentState
from podferry.storage.memory.store import CONTENTS, Content, Fault

COUNTER = itertools.count()
NAMES = ("", "train", "test")


@pytest.fixture
def contents():
    """Stores in memory, by the datasets' names."""
    made = {name: f"datasets-{next(COUNTER)}" for name in NAMES}
    for number, (name, bucket) in enumerate(made.items()):
        CONTENTS[bucket] = Content()
        CONTENTS[bucket].objects.update({f"d/{name}-{file}": b"x" * 4096 for file in range(number + 1)})
    yield {name: CONTENTS[bucket] for name, bucket in made.items()}, made
    for bucket in made.values():
        del CONTENTS[bucket]


@pytest.fixture
def rig(contents, tmp_path):
    """All three on stages below one directory."""
    stages = {name: tmp_path / f"stage-{name}" for name in NAMES}
    for stage in stages.values():
        stage.mkdir()

    def make(**options):
        specs = tuple(
            DatasetSpec(f"memory://{bucket}/d", str(stages[name]), name=name)
            for name, bucket in contents[1].items()
        )
        config = AgentConfig(FerrySpec(specs), Directories(tmp_path / "control", datasets=stages), **options)
        state = AgentState(Status())
        return DatasetsJob(config, state), state

    return make


async def test_each_has_its_stage_and_its_claim(rig, tmp_path):
    work, state = rig()
    await work.plan()
    await work.fetch()
    await work.close()
    held = {name: sorted(path.name for path in (tmp_path / f"stage-{name}").iterdir()) for name in NAMES}
    assert held == {"": ["-0"], "train": ["train-0", "train-1"], "test": ["test-0", "test-1", "test-2"]}
    assert [(one.name, one.files_done) for one in state.status.datasets] == [
        ("", 1),
        ("train", 2),
        ("test", 3),
    ]
    assert [line.partition(":")[0] for line in work.summary().splitlines()] == [
        "dataset",
        "dataset train",
        "dataset test",
    ]
    again, state = rig()
    await again.plan()
    assert [one.files_kept for one in state.status.datasets] == [1, 2, 3]
    await again.close()


async def test_together_they_do_not_fit_where_each_alone_would(rig, contents, monkeypatch, tmp_path):
    """Each asks for no more than 12 KiB; the volume that they share has 16."""
    shared = Capacity(volume_bytes=16 << 10, device=1)
    monkeypatch.setattr(module, "measure", lambda directory: shared)
    work, _ = rig(in_pod=True)
    with pytest.raises(Refused) as caught:
        await work.plan()
    await work.close()
    text = str(caught.value)
    assert "24.0 KiB" in text
    assert "podferry.io/dataset-size.train" in text
    assert all(call == "entries" for content in contents[0].values() for call, _ in content.calls)
    assert [list((tmp_path / f"stage-{name}").iterdir()) for name in NAMES] == [[], [], []]


async def test_all_problems_are_told_at_once_the_permanent_ones_decide(rig, contents):
    contents[0]["train"].objects.clear()
    contents[0]["test"].faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    work, _ = rig()
    with pytest.raises(PermanentError) as caught:
        await work.plan()
    assert len(caught.value.problems) == 2
    await work.close()


async def test_a_plan_that_is_repeated_lists_only_what_is_missing(rig, contents):
    contents[0]["test"].faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    work, state = rig()
    with pytest.raises(TemporaryError):
        await work.plan()
    await work.plan()
    assert contents[0][""].calls == [("entries", "")]
    await work.fetch()
    assert [one.files_done for one in state.status.datasets] == [1, 2, 3]
    await work.close()


async def test_one_is_fetched_after_the_other(rig, contents, monkeypatch):
    """The bytes in flight of each are those of the whole memory sum."""
    running, most = 0, 0
    fetch = module.DatasetJob.fetch

    async def counted(work):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await fetch(work)
        running -= 1

    monkeypatch.setattr(module.DatasetJob, "fetch", counted)
    work, _ = rig()
    await work.plan()
    await work.fetch()
    assert most == 1
    await work.close()


@pytest.mark.parametrize(("in_pod", "limit"), [(True, 1 << 20), (False, None)])
async def test_the_kubelet_watches_a_volume_on_disk_in_a_pod_alone(contents, tmp_path, in_pod, limit):
    stage = tmp_path / "stage"
    stage.mkdir()
    place = DatasetPlacement(stage, tmp_path / "claim", in_pod=in_pod)
    spec = DatasetSpec(f"memory://{contents[1]['']}/d", str(stage), size=1 << 20, medium=Medium.DISK)
    work = DatasetJob(spec, place, PrefetchSettings())
    assert (await work.plan()).limit == limit
    await work.close()
