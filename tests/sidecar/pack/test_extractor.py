"""Files are extracted from ranges of shards, each compared with its digest."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.pack import PackedFile, PackIndex, PackShard
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.pack.extractor import MAX_GAP_BYTES, spans
from podferry.sidecar.pack.shard_layout import plan_shards
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.memory.faults import Fault
from tests.support.pack_site import ENTRIES, TREE, TREES, Death, Site


@given(tree=TREES, shard_bytes=st.integers(1, 20_000))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_packing_and_unpacking_is_the_identity(tmp_path_factory, tree, shard_bytes):
    above = {name[:cut] for name in tree for cut, character in enumerate(name) if character == "/"}
    tree = {name: data for name, data in tree.items() if name not in above}
    site = Site(tmp_path_factory.mktemp("site"), tree)
    asyncio.run(site.pack(shard_bytes))
    asyncio.run(site.unpack())
    assert site.held() == tree


@given(ENTRIES, st.data(), st.integers(1 << 14, 1 << 20))
@settings(max_examples=40, deadline=None)
def test_spans_contain_each_wanted_file_once_and_little_else(entries, data, range_bytes):
    small = [Entry(entry.name, entry.size % (1 << 21)) for entry in entries]
    shards = [
        PackShard(
            plan.name,
            plan.bytes,
            "",
            tuple(PackedFile(e.name, o, e.size, "") for e, o in zip(plan.entries, plan.offsets, strict=True)),
        )
        for plan in plan_shards(small, 1 << 22)
    ]
    wanted = data.draw(st.sets(st.sampled_from([entry.name for entry in small])))
    came, waste = {}, 0
    for span in spans(PackIndex("", tuple(shards)), wanted, range_bytes):
        assert span.length <= range_bytes
        waste += span.length
        for file in span.members:
            assert span.start <= max(file.offset, span.start) <= span.start + span.length
            part = span.length if not span.complete else file.size
            came[file.name] = came.get(file.name, 0) + part
            waste -= part
    assert came == {entry.name: entry.size for entry in small if entry.name in wanted}
    assert waste <= MAX_GAP_BYTES * max(0, len(wanted) - 1)


async def test_temporary_errors_are_retried(site):
    site.source.faults.append(Fault("read", "large", error=Unavailable.of("gone")))
    site.target.faults.append(Fault("write", "shard-00002.tar", error=Unavailable.of("gone")))
    await site.pack()
    site.target.faults.append(Fault("read", "shard-*", error=Unavailable.of("gone")))
    await site.unpack()
    assert site.held() == TREE


async def test_a_kill_during_extraction_keeps_complete_files(site):
    await site.pack()
    left = [30]

    class Dying(StagingDir):
        def write_small(self, number, data, entry):
            left[0] -= 1
            if left[0] < 0:
                raise Death
            super().write_small(number, data, entry)

    with pytest.raises((Death, BaseExceptionGroup)):
        await site.unpack(stage=Dying)
    before = site.held()
    assert len({name for name in before if name in TREE}) >= 30
    kept = await site.unpack()
    assert len(kept) >= 30
    assert site.held() == TREE


async def test_a_selection_of_members_fetches_only_their_ranges(site):
    await site.pack()
    site.target.calls.clear()
    await site.unpack(Selection(("0/*.jpg",)))
    assert site.held() == {name: data for name, data in TREE.items() if name.startswith("0/")}
    assert len(set(site.reads())) < len(site.target.objects)
    await site.unpack(Selection(("1/*.jpg",)))
    assert site.held() == {name: data for name, data in TREE.items() if name.startswith("1/")}


@pytest.mark.parametrize("name", ["3/058.jpg", "large"])
async def test_a_damaged_file_is_named_and_not_published(site, name):
    result = await site.pack()
    [(shard, file)] = [(s, f) for s in result.index.shards for f in s.members if f.name == name]
    data = bytearray(site.target.objects[f"d/{shard.name}"])
    data[file.offset + 5] ^= 1
    site.target.objects[f"d/{shard.name}"] = bytes(data)
    with pytest.raises(Corrupt, match=name):
        await site.unpack()
    assert name not in site.held()
    [problem] = await site.problems()
    assert shard.name in problem.what
    assert f"1 of {len(shard.members)} files differ: {name}" in problem.measured


async def test_damage_in_transit_is_fetched_again(site):
    await site.pack()
    site.target.faults.append(Fault("read", "shard-00001.tar", corrupt=700))
    await site.unpack()
    assert site.held() == TREE
