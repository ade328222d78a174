"""A dataset is packed, also over several interrupted runs."""

from __future__ import annotations

import io
import tarfile

import pytest

from podferry.contract.errors import Changed, Refused, Unavailable
from podferry.contract.pack import INDEX
from podferry.contract.uri import parse_uri
from podferry.sidecar.pack.builder import PackBuilder
from podferry.storage.listing.dataset import Dataset, list_dataset
from podferry.storage.memory.faults import Content, Fault
from podferry.storage.memory.store import MemoryStore
from tests.support.pack_site import SHARD, TREE, Death, Site


async def test_a_packed_dataset_is_restored(site):
    result = await site.pack()
    assert result.kept == 0
    assert {name.removeprefix("d/") for name in site.target.objects} == {
        INDEX,
        *(shard.name for shard in result.index.shards),
    }
    assert len(result.index.shards) > 3
    await site.unpack()
    assert site.held() == TREE
    assert site.rest == []
    assert await site.problems() == []


async def test_shards_are_plain_tar_archives_of_bounded_size(site):
    result = await site.pack()
    found = {}
    for shard in result.index.shards:
        data = site.target.objects[f"d/{shard.name}"]
        assert len(data) == shard.bytes
        assert shard.bytes <= SHARD or len(shard.members) == 1
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            found |= {member.name: tar.extractfile(member).read() for member in tar}
            assert {(member.mtime, member.mode, member.uid) for member in tar} == {(0, 0o644, 0)}
        for file in shard.members:
            assert data[file.offset :][: file.size] == TREE[file.name]
    assert found == TREE


async def test_the_same_files_give_the_same_bytes(site, tmp_path):
    await site.pack()
    (tmp_path / "other").mkdir()
    other = Site(tmp_path / "other", dict(reversed(TREE.items())))
    await other.pack()
    assert other.target.objects == site.target.objects


@pytest.mark.parametrize("after", [False, True])
async def test_packing_resumes_after_a_kill_at_any_request(tmp_path, after):
    (tmp_path / "uninterrupted").mkdir()
    few = {name: TREE[name] for name in sorted(TREE)[40:]}
    uninterrupted = Site(tmp_path / "uninterrupted", few)
    await uninterrupted.pack()
    request = kept = 0
    while True:
        folder = tmp_path / f"{request}"
        folder.mkdir()
        site = Site(folder, few)
        site.target.faults.append(Fault(skip=request, times=1 << 30, error=Death(), after=after))
        try:
            await site.pack()
        except (Death, BaseExceptionGroup):
            assert f"d/{INDEX}" not in site.target.objects or after or request > 0
        else:
            break
        site.target.faults.clear()
        kept = max(kept, (await site.pack()).kept)
        assert site.target.objects == uninterrupted.target.objects
        request += 1
    assert request > 12
    assert kept > 2


async def test_a_repeated_command_reads_nothing_again(site):
    await site.pack()
    site.source.calls.clear()
    result = await site.pack()
    assert result.kept == len(result.index.shards)
    assert {call for call, _ in site.source.calls} == {"entries"}


async def test_a_shard_that_was_changed_is_packed_again(site):
    site.target.faults.append(Fault("write", INDEX, error=Unavailable.of("gone")))
    with pytest.raises(Unavailable):
        await site.pack()
    site.target.objects["d/shard-00001.tar"] = b"x" * len(site.target.objects["d/shard-00001.tar"])
    assert (await site.pack()).kept == len([n for n in site.target.objects if n.endswith(".tar")]) - 1
    assert await site.problems() == []


async def test_a_target_with_other_objects_is_refused_and_left_unchanged(site):
    site.target.objects["d/precious"] = b"1"
    with pytest.raises(Refused, match=r"contains other objects \(1 object: precious\)"):
        await site.pack()
    assert site.target.objects == {"d/precious": b"1"}


async def test_the_pack_of_another_version_is_refused_finished_or_not(site):
    site.target.faults.append(Fault("write", INDEX, error=Unavailable.of("gone")))
    with pytest.raises(Unavailable):
        await site.pack()
    with pytest.raises(Refused, match="unfinished pack of another dataset, or with other shards"):
        await site.pack(SHARD + 1)
    await site.pack()
    site.source.objects["d/new"] = b"1"
    before = dict(site.target.objects)
    with pytest.raises(Refused, match="contains the pack of another dataset"):
        await site.pack()
    assert site.target.objects == before


async def test_a_pack_is_not_packed_again_nor_into_its_own_dataset(site):
    await site.pack()
    site.source = site.target
    with pytest.raises(Refused, match="is a pack itself"):
        await site.pack()
    store = site.opened(Content(), "source")
    store.content.objects["d/a"] = b"1"
    dataset = Dataset(store, await list_dataset(store))
    for uri in ("memory://source/d", "memory://source/d/pack"):
        with pytest.raises(Refused, match="become a part of its dataset"):
            await PackBuilder(dataset, MemoryStore(parse_uri(uri), store.content)).run()


@pytest.mark.parametrize("name", ["large", "1/051.jpg"])
async def test_a_file_that_changes_while_it_is_packed_is_named(site, name):
    site.source.faults.append(Fault("read", name, error=Changed.of(f"{name} has changed")))
    with pytest.raises(Changed, match=name):
        await site.pack()
    assert f"d/{INDEX}" not in site.target.objects
