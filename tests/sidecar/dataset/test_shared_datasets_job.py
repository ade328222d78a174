import asyncio

import pytest

from podferry.cache.shared_stage.lock_server import serving_locks
from podferry.contract.errors import Changed, InvalidSpec
from podferry.contract.spec import DatasetMode, FerrySpec, MountedDataset
from podferry.contract.status import Status
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.dataset.shared_datasets_job import SharedDatasetsJob
from podferry.sidecar.state.agent_state import AgentState
from tests.support.holder_site import shared_stage


def config_of(source, directory, tmp_path):
    shared = MountedDataset("pvc://claim/files", DatasetMode.SHARE, "/data", source=str(source))
    return AgentConfig(FerrySpec(mounted=(shared,)), Directories(tmp_path), shared={"": directory})


@pytest.fixture
async def stage(content, tmp_path):
    made = shared_stage(content.uri, tmp_path / "held")
    yield made
    await made.close()


async def test_it_waits_for_the_holder_and_keeps_the_lock(content, stage, tmp_path):
    state = AgentState(Status())
    job = SharedDatasetsJob(config_of(content.uri, stage.place.directory, tmp_path), state)
    async with serving_locks(stage):
        planning = asyncio.create_task(job.plan())
        await stage.fill()
        await planning
        await job.run()
    [status] = state.status.datasets
    assert (status.files, status.bytes, status.bytes_done, status.files_done) == (3, 6, 6, 3)
    assert status.digest == stage.complete.document.manifest.digest
    assert (status.uri, status.path) == (str(content.uri), "/data")
    assert job.summary() == "dataset: 3 files, 6 B shared at /data"
    assert stage.readers
    await job.close()
    assert not stage.readers


async def test_a_worker_that_starts_again_during_training_locks_again(content, stage, tmp_path):
    await stage.fill()
    job = SharedDatasetsJob(config_of(content.uri, stage.place.directory, tmp_path), AgentState(Status()))
    async with serving_locks(stage):
        await job.run()
    assert stage.readers
    await job.close()


async def test_a_frozen_reference_to_another_version_is_refused(content, stage, tmp_path):
    await stage.fill()
    source = f"{content.uri}#sha256={'0' * 64}&bytes=6&files=3"
    job = SharedDatasetsJob(config_of(source, stage.place.directory, tmp_path), AgentState(Status()))
    async with serving_locks(stage):
        with pytest.raises(Changed):
            await job.plan()
    await job.close()


def test_a_shared_dataset_needs_its_directory(content, tmp_path):
    shared = MountedDataset("pvc://claim/files", DatasetMode.SHARE, "/data", source=str(content.uri))
    with pytest.raises(InvalidSpec, match="--shared-dir is missing"):
        AgentConfig(FerrySpec(mounted=(shared,)), Directories(tmp_path))
