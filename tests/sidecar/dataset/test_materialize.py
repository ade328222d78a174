"""Datasets with archives and packs, through plan and fetch, and after a kill."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import subprocess
import sys
import tarfile
import time

import pytest

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import EmptyDataset
from podferry.contract.spec import DatasetSpec, Shard, Unpack
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.dataset.fit_check import fit_problems
from podferry.sidecar.pack.builder import PackBuilder
from podferry.storage.listing.dataset import Dataset, list_dataset
from podferry.storage.memory.faults import Content
from podferry.storage.memory.store import CONTENTS, MemoryStore

COUNTER = itertools.count()
MANY = {f"{i % 7}/{i:05}": b"%d" % i for i in range(1500)}
TREE = {f"{i % 3}/{i:02}.jpg": os.urandom(i * 31) for i in range(30)}


def tar_gz(tree):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, data in tree.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


class Site:
    """A dataset in a store, and its staging directory over several starts."""

    def __init__(self, folder):
        self.name = f"contents-{next(COUNTER)}"
        self.content = CONTENTS[self.name] = Content()
        self.uri = parse_uri(f"memory://{self.name}/d")
        self.root, self.claims = folder / "stage", folder / "claims"
        self.root.mkdir()

    async def fetch(self, reference=None, **settings):
        """Plan, check and fetch like an agent; the status."""
        spec = DatasetSpec(str(reference or self.uri), str(self.root), **settings)
        job = DatasetJob(spec, DatasetPlacement(self.root, self.claims), PrefetchSettings())
        try:
            planned = await job.plan()
            assert fit_problems([planned.sized], in_pod=False) == []
            await planned.fetch(log_progress=False)
            return job.status
        finally:
            await job.close()

    async def pack(self, tree):
        """Replace the dataset with a pack of these files."""
        content = Content()
        content.objects = {f"s/{name}": data for name, data in tree.items()}
        source = MemoryStore(parse_uri("memory://source/s"), content)
        dataset = Dataset(source, await list_dataset(source))
        await PackBuilder(dataset, MemoryStore(self.uri), 5000).run()

    def held(self):
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    del CONTENTS[made.name]


async def test_archives_and_files_are_staged_together(site):
    archive = tar_gz(TREE)
    site.content.objects = {"d/a/x.tar.gz": archive, "d/a/plain": b"1"}
    status = await site.fetch(unpack=Unpack.ALWAYS)
    assert site.held() == {"a/plain": b"1", **{f"a/{name}": data for name, data in TREE.items()}}
    assert (status.files, status.files_done) == (2, 2)
    assert status.bytes == status.bytes_done == len(archive) + 1
    assert [path.name for path in site.root.iterdir()] == ["a"]
    site.content.calls.clear()
    status = await site.fetch(unpack=Unpack.ALWAYS)
    assert (status.files_kept, status.bytes_done) == (2, len(archive) + 1)
    assert {call for call, _ in site.content.calls} == {"entries"}


async def test_another_unpack_mode_changes_the_staged_files(site):
    site.content.objects = {"d/x.tar.gz": tar_gz(TREE), "d/plain": b"1"}
    for mode in (Unpack.ALWAYS, Unpack.AUTO, Unpack.ALWAYS, Unpack.NEVER):
        await site.fetch(unpack=mode)
        unpacked = mode is Unpack.ALWAYS
        assert site.held().keys() == {"plain", *(TREE if unpacked else {"x.tar.gz"})}


async def test_a_pack_is_unpacked_unless_disabled(site):
    await site.pack(TREE)
    status = await site.fetch()
    assert site.held() == TREE
    assert (status.files, status.files_done) == (len(TREE), len(TREE))
    assert status.bytes_done == status.bytes == sum(map(len, TREE.values()))
    await site.fetch(unpack=Unpack.NEVER)
    assert {f"d/{name}" for name in site.held()} == set(site.content.objects)
    await site.fetch()
    assert site.held() == TREE


async def test_a_frozen_pack_must_not_change(site):
    await site.pack(TREE)
    listed = await list_dataset(MemoryStore(site.uri))
    status = await site.fetch(reference_to(listed))
    assert status.digest == listed.digest
    assert site.held() == TREE


async def test_globs_and_shards_apply_to_the_members_of_a_pack(site):
    await site.pack(TREE)
    await site.fetch(include=("1/*.jpg",), exclude=("*4.jpg",))
    wanted = {name for name in TREE if name.startswith("1/") and not name.endswith("4.jpg")}
    assert site.held() == {name: TREE[name] for name in wanted}
    found = []
    for rank in range(3):
        await site.fetch(shard=Shard(rank, 3))
        found += site.held()
    assert sorted(found) == sorted(TREE)
    with pytest.raises(EmptyDataset, match=r"none of 30 files matches \*\.png"):
        await site.fetch(include=("*.png",))


GET = "from podferry.cli.dataset.get import main; import sys; sys.exit(main(sys.argv[1:]))"


def archived(folder):
    """A dataset of one archive, and how to unpack it."""
    (folder / "x.tar.gz").write_bytes(tar_gz(MANY))
    return "always"


def packed(folder):
    """The same as a pack."""
    content, target = Content(), Content()
    content.objects = {f"s/{name}": data for name, data in MANY.items()}
    store = MemoryStore(parse_uri("memory://kill/s"), content)

    async def pack():
        await PackBuilder(
            Dataset(store, await list_dataset(store)), MemoryStore(parse_uri("memory://kill/t"), target)
        ).run()

    asyncio.run(pack())
    for key, data in target.objects.items():
        (folder / key.removeprefix("t/")).write_bytes(data)
    return "auto"


@pytest.mark.parametrize("made", [archived, packed])
def test_a_killed_command_is_resumed(tmp_path, made):
    """`kill -9` once the first file has its name: the next start completes the directory."""
    source, stage = tmp_path / "source", tmp_path / "stage"
    source.mkdir()
    stage.mkdir()
    command = [sys.executable, "-c", GET, str(source), str(stage), "--unpack", made(source)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while first.poll() is None and not any(path.name != ".podferry-partial" for path in stage.iterdir()):
        time.sleep(0.001)
    first.kill()
    first.wait()
    left = {path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file()}
    assert {name for name in left if not name.startswith(".")} <= MANY.keys()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert {
        path.relative_to(stage).as_posix(): path.read_bytes() for path in stage.rglob("*") if path.is_file()
    } == MANY
