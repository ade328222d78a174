"""A packed dataset is restored in every way; damage is found and named."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile

import msgspec
import pytest
import stamina
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Changed, Corrupt, NotFound, Refused, Unavailable
from podferry.contract.manifest import Entry, freeze
from podferry.contract.pack import INDEX, UNFINISHED_DIR, PackedFile, decode_index, encode_index
from podferry.contract.spec import Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.materialize import Materializer
from podferry.sidecar.dataset.selection import Selection, select_manifest
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.pack import builder
from podferry.sidecar.pack.builder import PackBuilder
from podferry.sidecar.pack.extractor import MAX_GAP_BYTES, spans
from podferry.sidecar.pack.reader import open_pack
from podferry.sidecar.pack.shard_hasher import ShardHasher
from podferry.sidecar.pack.shard_layout import batches, header, plan_shards
from podferry.sidecar.pack.verify import verify_pack
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.listing.dataset import Dataset, list_dataset
from podferry.storage.memory.faults import Content, Fault
from podferry.storage.memory.store import MemoryStore

SETTINGS = PrefetchSettings(in_flight=4, range_bytes=3000, buffer_bytes=9000, attempts=2)
SHARD = 10_000
TREE = {f"{i % 5}/{i:03}.jpg": os.urandom(i * 37) for i in range(60)} | {
    "large": os.urandom(25_000),
    "ä/" + "n" * 200: b"long name",
    "empty": b"",
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(builder, "BATCH_BYTES", 4000)
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


class Site:
    """A dataset, the target of its pack, and a staging directory."""

    def __init__(self, folder, tree=TREE):
        self.source, self.target = Content(), Content()
        self.source.objects = {f"d/{name}": data for name, data in tree.items()}
        self.root, self.claims = folder / "stage", folder / "claims"
        self.root.mkdir()

    def opened(self, content, name):
        return MemoryStore(parse_uri(f"memory://{name}/d"), content)

    async def pack(self, shard_bytes=SHARD):
        store = self.opened(self.source, "source")
        dataset = Dataset(store, await list_dataset(store))
        return await PackBuilder(dataset, self.opened(self.target, "target"), shard_bytes, SETTINGS).run()

    async def unpack(self, selection=None, stage=StagingDir):
        """Claim and fetch like an agent; the names that were kept."""
        store = self.opened(self.target, "target")
        pack = await open_pack(store, await list_dataset(store))
        part = select_manifest(pack.manifest, store.uri, selection or Selection())
        held = stage(self.root, self.claims)
        try:
            contents = Materializer(part, pack, Unpack.AUTO, held, self.claims)
            kept = contents.claim()
            plan = plan_fetch(part, kept, SETTINGS)
            seen = []
            progress = lambda files, count: seen.append((files, count))  # noqa: E731
            rest = await contents.unpack(plan, FetchContext(store, held, SETTINGS, progress))
            assert sum(files for files, _ in seen) == len(plan.files) - len(rest.files)
            assert sum(count for _, count in seen) == sum(e.size for e in plan.files) - sum(
                e.size for e in rest.files
            )
            self.rest = [entry.name for entry in rest.files]
            held.remove_partials()
        finally:
            held.close()
        return kept

    async def problems(self):
        store = self.opened(self.target, "target")
        return await verify_pack(await open_pack(store, await list_dataset(store)), store, SETTINGS)

    def held(self):
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def reads(self):
        return [name for call, name in self.target.calls if call == "read"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


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


NAMES = st.from_regex(r"[a-zä ]{1,8}(/[a-z.]{1,4}x){0,2}", fullmatch=True)
TREES = st.dictionaries(NAMES, st.binary(max_size=9000), min_size=1, max_size=12)


@given(tree=TREES, shard_bytes=st.integers(1, 20_000))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_packing_and_unpacking_is_the_identity(tmp_path_factory, tree, shard_bytes):
    above = {name[:cut] for name in tree for cut, character in enumerate(name) if character == "/"}
    tree = {name: data for name, data in tree.items() if name not in above}
    site = Site(tmp_path_factory.mktemp("site"), tree)
    asyncio.run(site.pack(shard_bytes))
    asyncio.run(site.unpack())
    assert site.held() == tree


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


ENTRIES = st.lists(
    st.builds(Entry, st.one_of(NAMES, st.text("aä/", min_size=90, max_size=300)), st.integers(0, 1 << 40)),
    min_size=1,
    max_size=12,
    unique_by=lambda entry: entry.name,
)


@given(ENTRIES)
@settings(max_examples=40, deadline=None)
def test_headers_match_the_library(entries):
    for entry in entries:
        info = tarfile.TarInfo(entry.name)
        info.size = entry.size
        assert header(entry) == info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


@given(ENTRIES, st.integers(1, 1 << 41), st.integers(1 << 34, 1 << 40))
@settings(max_examples=40, deadline=None)
def test_the_planned_offsets_are_those_written(entries, shard_bytes, batch_bytes):
    for shard in plan_shards(entries, shard_bytes):
        at, offsets, sizes = 0, [], {}
        for item in (item for batch in batches(shard, batch_bytes) for item in batch):
            if item.header:
                offsets.append(at + len(item.header))
            assert item.start == sizes.get(item.entry.name, 0)
            sizes[item.entry.name] = item.start + item.length
            at += item.bytes
        assert tuple(offsets) == shard.offsets
        assert sizes == {entry.name: entry.size for entry in shard.entries}
        assert at + 1024 == shard.bytes


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), st.lists(st.integers(1, 9)))
def test_digests_do_not_depend_on_the_chunks(gaps, cuts):
    ranges, at = [], 0
    for gap, size in gaps:
        ranges.append((at + gap, size))
        at += gap + size
    data = os.urandom(at + 3)
    once, pieces = ShardHasher(ranges), ShardHasher(ranges)
    once.update(data)
    start = 0
    for cut in [*cuts, len(data)]:
        pieces.update(data[start : start + cut])
        start += cut
    each = []
    for offset, size in ranges:
        one = ShardHasher([])
        one.update(data[offset : offset + size])
        each.append(one.hexdigest())
    assert once.member_digests == pieces.member_digests == each
    assert once.hexdigest() == pieces.hexdigest()


@given(ENTRIES, st.data(), st.integers(1 << 14, 1 << 20))
@settings(max_examples=40, deadline=None)
def test_spans_contain_each_wanted_file_once_and_little_else(entries, data, range_bytes):
    small = [Entry(entry.name, entry.size % (1 << 21)) for entry in entries]
    shards = [
        builder.PackShard(
            plan.name,
            plan.bytes,
            "",
            tuple(PackedFile(e.name, o, e.size, "") for e, o in zip(plan.entries, plan.offsets, strict=True)),
        )
        for plan in plan_shards(small, 1 << 22)
    ]
    wanted = data.draw(st.sets(st.sampled_from([entry.name for entry in small])))
    came, waste = {}, 0
    for span in spans(builder.PackIndex("", tuple(shards)), wanted, range_bytes):
        assert span.length <= range_bytes
        waste += span.length
        for file in span.members:
            assert span.start <= max(file.offset, span.start) <= span.start + span.length
            part = span.length if not span.complete else file.size
            came[file.name] = came.get(file.name, 0) + part
            waste -= part
    assert came == {entry.name: entry.size for entry in small if entry.name in wanted}
    assert waste <= MAX_GAP_BYTES * max(0, len(wanted) - 1)


class Death(BaseException):
    """Ends a process like a kill."""


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


async def test_objects_next_to_the_shards_are_files_of_the_dataset(site):
    await site.pack()
    site.target.objects["d/README"] = b"read me"
    site.target.objects[f"d/{UNFINISHED_DIR}/begun.json"] = b"{}"
    await site.unpack()
    assert site.rest == ["README"]
    site.target.objects["d/large"] = b"of the same name"
    with pytest.raises(Corrupt, match="listed twice"):
        await site.unpack()


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
    assert f"1 of {len(shard.members)} files differ: '{name}'" in problem.measured


async def test_damage_in_transit_is_fetched_again(site):
    await site.pack()
    site.target.faults.append(Fault("read", "shard-00001.tar", corrupt=700))
    await site.unpack()
    assert site.held() == TREE


async def test_a_missing_or_short_shard_is_reported_before_any_fetch(site):
    result = await site.pack()
    first, second = (shard.name for shard in result.index.shards[:2])
    del site.target.objects[f"d/{first}"]
    site.target.objects[f"d/{second}"] = b"short"
    with pytest.raises(Changed) as caught:
        await site.unpack()
    assert [problem.measured.partition(":")[0] for problem in caught.value.problems] == [first, second]
    assert site.held() == {}


async def test_a_dataset_that_is_not_a_pack_is_refused(site):
    site.target.objects["d/a"] = b"1"
    with pytest.raises(NotFound, match="is not a pack"):
        await site.unpack()


def with_first_file(index, **changes):
    shard, *others = index.shards
    file, *rest = shard.members
    file = msgspec.structs.replace(file, **changes)
    shard = msgspec.structs.replace(shard, members=(file, *rest))
    return msgspec.structs.replace(index, shards=(shard, *others))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../x"}, "not a plain relative path"),
        ({"name": "/etc/passwd"}, "not a plain relative path"),
        ({"name": "0/005.jpg"}, "lists a name twice"),
        ({"name": "1"}, "both a file and a directory"),
        ({"offset": 2000}, "is not within"),
        ({"size": 1 << 50}, "is not within"),
        ({"size": -1}, "is not within"),
        ({"offset": -5}, "is not within"),
    ],
)
async def test_an_index_with_impossible_members_is_corrupt(site, changes, words):
    result = await site.pack()
    site.target.objects[f"d/{INDEX}"] = encode_index(with_first_file(result.index, **changes))
    with pytest.raises(Corrupt, match=words):
        await site.unpack()
    assert site.held() == {}


def test_an_index_round_trips():
    index = builder.PackIndex("ab", (builder.PackShard("s.tar", 9, "cd", (PackedFile("a/b", 2, 3, "ef"),)),))
    assert decode_index(encode_index(index), "x") == index
    assert index.entries == freeze("memory://x", [Entry("a/b", 3, "ef")]).entries
