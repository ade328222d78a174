import itertools

import msgspec
import pytest

from podferry.contract.api import Status
from podferry.contract.errors import Changed, EmptyDataset, Refused, Unavailable
from podferry.contract.reference import reference_to
from podferry.contract.spec import DatasetSpec, FerrySpec
from podferry.contract.uri import parse_uri
from podferry.sidecar import dataset as module
from podferry.sidecar.capacity import Capacity
from podferry.sidecar.config import AgentConfig
from podferry.sidecar.dataset import DatasetWork
from podferry.sidecar.places import Places
from podferry.sidecar.state import State
from podferry.storage.listing import list_dataset
from podferry.storage.memory import CONTENTS, Content, Fault, MemoryStore

COUNTER = itertools.count()
FILES = {"d/a/1": b"one", "d/a/2": b"two", "d/b": b""}


@pytest.fixture
def content():
    name = f"dataset-{next(COUNTER)}"
    made = CONTENTS[name] = Content()
    made.objects.update(FILES)
    made.uri = parse_uri(f"memory://{name}/d")
    yield made
    del CONTENTS[name]


@pytest.fixture
def work(content, tmp_path):
    """Datasets' work on one stage, as restarts are; the one before ends."""
    (tmp_path / "stage").mkdir()
    made = []

    def making(reference=None, *, in_pod=False):
        if made:
            made[-1]._stage.close()
        spec = DatasetSpec(str(reference or content.uri), str(tmp_path / "stage"))
        places = Places(
            tmp_path / "control", dataset=tmp_path / "stage", claim=tmp_path / "claim", in_pod=in_pod
        )
        state = State(Status(starts=1, started_at=0.0))
        made.append(DatasetWork(spec, AgentConfig(FerrySpec(dataset=spec), places), state))
        return made[-1]

    yield making
    if made:
        made[-1]._stage.close()


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


async def test_a_dataset_is_planned_and_fetched(work, tmp_path):
    first = work()
    await first.plan()
    assert held(tmp_path / "stage") == {}
    assert (first.status.files, first.status.bytes, first.status.files_done) == (3, 6, 0)
    await first.fetch()
    assert held(tmp_path / "stage") == {"a/1": b"one", "a/2": b"two", "b": b""}
    assert (first.status.files_done, first.status.bytes_done) == (3, 6)
    assert first.summary().startswith("dataset: 3 files, 6 B in 0.")
    second = work()
    await second.plan()
    await second.fetch()
    assert second.summary().endswith(", 3 of them kept")
    assert (second.status.files_done, second.status.bytes_done) == (3, 6)


async def test_a_reference_that_is_frozen_differently_touches_nothing(work, content, tmp_path):
    manifest = await list_dataset(MemoryStore(content.uri))
    frozen = reference_to(manifest)
    first = work(frozen)
    await first.plan()
    await first.fetch()
    content.objects["d/c"] = b"new"
    with pytest.raises(Changed, match="no longer the one that was frozen"):
        await work(frozen).plan()
    assert held(tmp_path / "stage").keys() == {"a/1", "a/2", "b"}


async def test_an_empty_dataset_names_what_is_near(work, content, tmp_path):
    with pytest.raises(EmptyDataset, match=f"Did you mean {content.uri}"):
        await work(msgspec.structs.replace(content.uri, key="dd")).plan()
    assert not (tmp_path / "claim").exists()


async def test_a_single_object_is_a_dataset(work, content, tmp_path):
    single = work(content.uri / "a/1")
    await single.plan()
    await single.fetch()
    assert held(tmp_path / "stage") == {"1": b"one"}


async def test_a_path_that_is_no_directory_is_refused(work, tmp_path):
    (tmp_path / "stage").rmdir()
    with pytest.raises(Refused, match="is no directory"):
        await work().plan()


REMEDIES = [(True, "podferry.io/dataset-size"), (False, "--dataset-path")]


@pytest.mark.parametrize(("in_pod", "remedy"), REMEDIES)
async def test_what_does_not_fit_is_refused_before_a_byte_moves(
    work, content, monkeypatch, tmp_path, in_pod, remedy
):
    monkeypatch.setattr(module, "measure", lambda directory: Capacity(volume_bytes=10))
    with pytest.raises(Refused, match=remedy):
        await work(in_pod=in_pod).plan()
    assert {call for call, _ in content.calls} == {"entries"}
    assert list((tmp_path / "stage").iterdir()) == []


async def test_a_plan_can_be_repeated_once_the_store_answers(work, content):
    content.faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    patient = work()
    with pytest.raises(Unavailable):
        await patient.plan()
    await patient.plan()
    await patient.fetch()
    assert patient.status.files_done == 3
