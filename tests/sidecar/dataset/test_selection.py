from __future__ import annotations

import msgspec
import pytest

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import Changed, EmptyDataset, Refused, Unavailable
from podferry.contract.manifest import encode_manifest
from podferry.contract.spec import Shard
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import Fault, MemoryStore
from tests.support.dataset_site import fetch, held


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


async def test_a_manifest_whose_store_does_not_answer_is_not_planned(job, content, tmp_path):
    """A fetch is patient with a store that answered before; that of a manifest is not listed."""
    manifest = tmp_path / "m.podferry.json"
    manifest.write_bytes(encode_manifest(await list_dataset(MemoryStore(content.uri))))
    content.faults.append(Fault("stat", error=Unavailable.of("the store does not answer")))
    planned = job(f"file://{manifest}")
    with pytest.raises(Unavailable):
        await planned.plan()
    await fetch(planned)
    assert held(tmp_path / "stage") == {"a/1": b"one", "a/2": b"two", "b": b""}


async def test_a_manifest_whose_first_file_is_gone_is_planned(job, content, tmp_path):
    manifest = tmp_path / "m.podferry.json"
    manifest.write_bytes(encode_manifest(await list_dataset(MemoryStore(content.uri))))
    del content.objects["d/a/1"]
    planned = await job(f"file://{manifest}").plan()
    with pytest.raises(Changed, match="d/a/1"):
        await planned.fetch()
