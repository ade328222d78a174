import itertools
import stat

import msgspec
import pytest

from podferry.contract.errors import Changed, EmptyDataset, Refused, Unavailable
from podferry.contract.reference import reference_to
from podferry.contract.spec import DatasetSpec, Shard
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import CONTENTS, Content, Fault, MemoryStore

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

    def making(reference=None, **wishes):
        if made:
            made[-1]._stage.close()
        spec = DatasetSpec(str(reference or content.uri), str(tmp_path / "stage"), **wishes)
        place = DatasetPlacement(tmp_path / "stage", tmp_path / "claim")
        made.append(DatasetJob(spec, place, PrefetchSettings()))
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


async def test_a_plan_can_be_repeated_once_the_store_answers(work, content):
    content.faults.append(Fault("entries", error=Unavailable.of("the store does not answer")))
    patient = work()
    with pytest.raises(Unavailable):
        await patient.plan()
    await patient.plan()
    await patient.fetch()
    assert patient.status.files_done == 3


async def brought(work):
    await work.plan()
    await work.fetch()
    return work.status


async def test_a_selection_is_brought_and_named_by_its_own_digest(work, content, tmp_path):
    whole = reference_to(await list_dataset(MemoryStore(content.uri)))
    status = await brought(work(include=("a/",), exclude=("2",)))
    assert held(tmp_path / "stage") == {"a/1": b"one"}
    assert (status.files, status.bytes) == (1, 3)
    assert status.digest != whole.digest
    frozen = msgspec.structs.replace(whole, digest=status.digest)
    await work(frozen, include=("a/",), exclude=("2",)).plan()
    with pytest.raises(Changed):
        await work(whole, include=("a/",)).plan()


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"include": ("*.jgp",)}, "none of 4 files matches *.jgp). The nearest names are c.jpg"),
        ({"include": ("a/",), "exclude": ("1", "2")}, "2 files to include, all of them excluded by 1 2"),
        ({"exclude": ("**",)}, "4 files to include, all of them excluded by **"),
    ],
)
async def test_a_selection_that_leaves_nothing_is_told_with_numbers(work, content, wishes, said, tmp_path):
    content.objects["d/c.jpg"] = b"x"
    with pytest.raises(EmptyDataset) as caught:
        await work(**wishes).plan()
    assert said in str(caught.value)
    assert not (tmp_path / "claim").exists()


async def test_shards_are_parts_of_one_selection(work, content, tmp_path):
    content.objects.update({f"d/more/{number}": b"x" * number for number in range(20)})
    parts, digests = [], set()
    for rank in range(3):
        digests.add((await brought(work(shard=Shard(rank, 3)))).digest)
        parts.append(held(tmp_path / "stage"))
    assert [sum(part.keys() & other.keys() == set() for other in parts) for part in parts] == [2, 2, 2]
    whole = {name.removeprefix("d/"): data for name, data in content.objects.items()}
    assert parts[0] | parts[1] | parts[2] == whole
    assert len(digests) == 1, "every rank reports the same dataset"


async def test_a_pod_without_a_part_is_refused(work, tmp_path):
    with pytest.raises(Refused, match=r"holds no file \(3 files, part 7 of 8"):
        await work(shard=Shard(7, 8)).plan()
    assert not (tmp_path / "claim").exists()


async def test_files_have_the_mode_that_is_wished(work, tmp_path):
    await brought(work(file_mode=0o440))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "stage").rglob("*") if path.is_file()}
    assert modes == {0o440}


async def test_what_another_agent_fetches_is_not_abandoned(work, tmp_path):
    first = work()
    await first.plan()
    spec = first.spec
    other = DatasetJob(spec, DatasetPlacement(tmp_path / "stage", tmp_path / "claim"), PrefetchSettings())
    with pytest.raises(Refused, match="another podferry is using"):
        await other.plan()
    other.abandon()
    await first.fetch()
    assert held(tmp_path / "stage").keys() == {"a/1", "a/2", "b"}
