"""Several datasets of one agent: planned together, fetched in turn."""

import asyncio
import itertools

import pytest

from podferry.contract.errors import PermanentError, Refused, TemporaryError, Unavailable
from podferry.contract.spec import DatasetSpec, FerrySpec, Medium
from podferry.contract.status import Status
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import dataset_job
from podferry.sidecar.dataset.all_datasets_job import DatasetsJob
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
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
    """All three in staging directories of one parent."""
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


async def test_each_has_its_own_staging_directory(rig, tmp_path):
    job, state = rig()
    await (await job.plan()).fetch()
    await job.close()
    held = {name: sorted(path.name for path in (tmp_path / f"stage-{name}").iterdir()) for name in NAMES}
    assert held == {"": ["-0"], "train": ["train-0", "train-1"], "test": ["test-0", "test-1", "test-2"]}
    assert [(one.name, one.files_done) for one in state.status.datasets] == [
        ("", 1),
        ("train", 2),
        ("test", 3),
    ]
    assert [line.partition(":")[0] for line in job.summary().splitlines()] == [
        "dataset",
        "dataset train",
        "dataset test",
    ]
    again, state = rig()
    await again.plan()
    assert [one.files_kept for one in state.status.datasets] == [1, 2, 3]
    await again.close()


async def test_datasets_that_fit_alone_may_not_fit_together(rig, contents, monkeypatch, tmp_path):
    """Each takes at most 12 KiB; the volume that they share has 16."""
    shared = Capacity(volume_bytes=16 << 10, device=1)
    monkeypatch.setattr(dataset_job, "measure", lambda directory: shared)
    job, _ = rig(in_pod=True)
    with pytest.raises(Refused) as caught:
        await job.plan()
    await job.close()
    text = str(caught.value)
    assert "24.0 KiB" in text
    assert "podferry.io/dataset-size.train" in text
    assert all(call == "entries" for content in contents[0].values() for call, _ in content.calls)
    assert [list((tmp_path / f"stage-{name}").iterdir()) for name in NAMES] == [[], [], []]


async def test_all_problems_are_reported_at_once_and_a_permanent_one_decides(rig, contents):
    contents[0]["train"].objects.clear()
    contents[0]["test"].faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    job, _ = rig()
    with pytest.raises(PermanentError) as caught:
        await job.plan()
    assert len(caught.value.problems) == 2
    await job.close()


async def test_a_repeated_plan_lists_only_what_is_missing(rig, contents):
    contents[0]["test"].faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    job, state = rig()
    with pytest.raises(TemporaryError):
        await job.plan()
    planned = await job.plan()
    assert contents[0][""].calls == [("entries", "")]
    await planned.fetch()
    assert [one.files_done for one in state.status.datasets] == [1, 2, 3]
    await job.close()


async def test_datasets_are_fetched_one_after_the_other(rig, contents, monkeypatch):
    """Each may have as many bytes in flight as the memory sum allows for all."""
    running, most = 0, 0
    fetch = PlannedDataset.fetch

    async def counted(planned):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await fetch(planned)
        running -= 1

    monkeypatch.setattr(PlannedDataset, "fetch", counted)
    job, _ = rig()
    await (await job.plan()).fetch()
    assert most == 1
    await job.close()


@pytest.mark.parametrize(("in_pod", "limit"), [(True, 1 << 20), (False, None)])
async def test_only_the_kubelet_limits_a_volume_on_disk_and_only_in_a_pod(contents, tmp_path, in_pod, limit):
    stage = tmp_path / "stage"
    stage.mkdir()
    placement = DatasetPlacement(stage, tmp_path / "claim", in_pod=in_pod)
    spec = DatasetSpec(f"memory://{contents[1]['']}/d", str(stage), size=1 << 20, medium=Medium.DISK)
    job = DatasetJob(spec, placement, PrefetchSettings())
    assert (await job.plan()).sized.size_limit == limit
    await job.close()
