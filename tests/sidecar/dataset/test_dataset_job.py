import itertools
import stat

import msgspec
import pytest

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import Changed, EmptyDataset, Refused, Unavailable
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
def job(content, tmp_path):
    """Successive jobs on one staging directory, as after restarts; each ends the previous one."""
    (tmp_path / "stage").mkdir()
    made = []

    def making(reference=None, **settings):
        if made:
            made[-1].staging.close()
        spec = DatasetSpec(str(reference or content.uri), str(tmp_path / "stage"), **settings)
        placement = DatasetPlacement(tmp_path / "stage", tmp_path / "claim")
        made.append(DatasetJob(spec, placement, PrefetchSettings()))
        return made[-1]

    yield making
    if made:
        made[-1].staging.close()


async def fetch(job):
    await (await job.plan()).fetch()
    return job.status


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


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


async def test_a_selection_is_fetched_and_has_its_own_digest(job, content, tmp_path):
    full = reference_to(await list_dataset(MemoryStore(content.uri)))
    status = await fetch(job(include=("a/",), exclude=("2",)))
    assert held(tmp_path / "stage") == {"a/1": b"one"}
    assert (status.files, status.bytes) == (1, 3)
    assert status.digest != full.digest
    frozen = msgspec.structs.replace(full, digest=status.digest)
    await job(frozen, include=("a/",), exclude=("2",)).plan()
    with pytest.raises(Changed):
        await job(full, include=("a/",)).plan()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"include": ("*.jgp",)}, "none of 4 files matches *.jgp). The nearest names are c.jpg"),
        ({"include": ("a/",), "exclude": ("1", "2")}, "2 files to include, all of them excluded by 1 2"),
        ({"exclude": ("**",)}, "4 files to include, all of them excluded by **"),
    ],
)
async def test_an_empty_selection_is_reported_with_numbers(job, content, settings, message, tmp_path):
    content.objects["d/c.jpg"] = b"x"
    with pytest.raises(EmptyDataset) as caught:
        await job(**settings).plan()
    assert message in str(caught.value)
    assert not (tmp_path / "claim").exists()


async def test_shards_are_parts_of_one_selection(job, content, tmp_path):
    content.objects.update({f"d/more/{number}": b"x" * number for number in range(20)})
    parts, digests = [], set()
    for rank in range(3):
        digests.add((await fetch(job(shard=Shard(rank, 3)))).digest)
        parts.append(held(tmp_path / "stage"))
    assert [sum(part.keys() & other.keys() == set() for other in parts) for part in parts] == [2, 2, 2]
    expected = {name.removeprefix("d/"): data for name, data in content.objects.items()}
    assert parts[0] | parts[1] | parts[2] == expected
    assert len(digests) == 1, "every rank reports the same dataset"


async def test_a_pod_with_an_empty_shard_is_refused(job, tmp_path):
    with pytest.raises(Refused, match=r"holds no file \(3 files, part 7 of 8"):
        await job(shard=Shard(7, 8)).plan()
    assert not (tmp_path / "claim").exists()


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
