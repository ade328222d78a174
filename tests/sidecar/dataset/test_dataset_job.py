import stat

import msgspec
import pytest

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import Changed, EmptyDataset, Refused, Unavailable
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import Fault, MemoryStore
from tests.support.dataset_site import fetch, held


async def test_a_dataset_is_planned_and_fetched(job, tmp_path):
    first = job()
    planned = await first.plan()
    assert held(tmp_path / "stage") == {}
    assert (first.status.files, first.status.bytes, first.status.files_done) == (3, 6, 0)
    await planned.fetch()
    assert held(tmp_path / "stage") == {"a/1": b"one", "a/2": b"two", "b": b""}
    assert (first.status.files_done, first.status.bytes_done) == (3, 6)
    assert first.summary().startswith("dataset: 3 files, 6 B in 0.")
    second = job()
    await fetch(second)
    assert second.summary().endswith(", 3 of them kept")
    assert (second.status.files_done, second.status.bytes_done) == (3, 6)


async def test_the_status_has_the_size_that_is_allowed(job, tmp_path):
    one = job()
    placement = DatasetPlacement(tmp_path / "other", tmp_path / "claim", size_limit=7)
    limited = DatasetJob(one.spec, placement, one.settings)
    assert (one.status.size_limit, limited.status.size_limit) == (None, 7)


async def test_a_changed_dataset_leaves_the_staging_directory_alone(job, content, tmp_path):
    manifest = await list_dataset(MemoryStore(content.uri))
    frozen = reference_to(manifest)
    await fetch(job(frozen))
    content.objects["d/c"] = b"new"
    with pytest.raises(Changed, match="has changed since it was frozen"):
        await job(frozen).plan()
    assert held(tmp_path / "stage").keys() == {"a/1", "a/2", "b"}


async def test_an_empty_dataset_suggests_similar_names(job, content, tmp_path):
    with pytest.raises(EmptyDataset, match=f"Did you mean {content.uri}"):
        await job(msgspec.structs.replace(content.uri, key="dd")).plan()
    assert not (tmp_path / "claim").exists()


async def test_a_single_object_is_a_dataset(job, content, tmp_path):
    await fetch(job(content.uri / "a/1"))
    assert held(tmp_path / "stage") == {"1": b"one"}


async def test_a_path_that_is_not_a_directory_is_refused(job, tmp_path):
    (tmp_path / "stage").rmdir()
    with pytest.raises(Refused, match="is not a directory"):
        await job().plan()


async def test_a_plan_can_be_repeated_once_the_store_answers(job, content):
    content.faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    retried = job()
    with pytest.raises(Unavailable):
        await retried.plan()
    await fetch(retried)
    assert retried.status.files_done == 3


async def test_files_have_the_requested_mode(job, tmp_path):
    await fetch(job(file_mode=0o440))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "stage").rglob("*") if path.is_file()}
    assert modes == {0o440}


async def test_abandon_leaves_another_agents_files(job, tmp_path):
    first = job()
    planned = await first.plan()
    spec = first.spec
    other = DatasetJob(spec, DatasetPlacement(tmp_path / "stage", tmp_path / "claim"), PrefetchSettings())
    with pytest.raises(Refused, match="another podferry is using"):
        await other.plan()
    other.abandon()
    await planned.fetch()
    assert held(tmp_path / "stage").keys() == {"a/1", "a/2", "b"}
