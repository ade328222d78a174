"""Directories, S3 and web servers as source and destination; links, kinds of names, kills."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podferry.contract.errors import Changed, InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.storage.factory import open_store
from podferry.storage.listing.by_directory import list_entries
from podferry.storage.local.store import LocalStore
from podferry.storage.store import StoreConfig
from tests.support.archive_site import archive_of
from tests.support.memory_bucket import Killed
from tests.support.sync_site import DEATH, FILES


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "data"
    for name, data in {**FILES, "big": b"b" * (9 << 20)}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


async def held_at(uri, config):
    store = open_store(parse_uri(uri), config)
    try:
        return {entry.name: bytes(await store.read(entry.name)) for entry in await list_entries(store)}
    finally:
        await store.close()


REAL = PrefetchSettings()
WAYS = ["file to file", "file to s3", "s3 to s3", "s3 to file", "http to s3", "http to file"]


@pytest.mark.parametrize("way", WAYS)
async def test_from_any_store_to_any_other(way, tree, tmp_path, moto, site, web_tree):
    """Stores without a common checksum: what proves equality is the record."""
    config, bucket = moto, "s3://bucket"
    local, remote = f"file://{tree}", f"{bucket}/{tmp_path.name} {way}/source"
    source_kind, _, target_kind = way.partition(" to ")
    source = {"file": local, "s3": remote, "http": web_tree}[source_kind]
    (tmp_path / "out").mkdir()
    target = (
        f"file://{tmp_path}/out/copy" if target_kind == "file" else f"{bucket}/{tmp_path.name} {way}/copy"
    )

    async def sync(source, target):
        made = site.make(source=source, target=target, config=config, settings=REAL, delete=True)
        return await made.run()

    async def prepare():
        if source_kind == "s3":
            await sync(local, remote)

    await prepare()
    assert len((await sync(source, target)).moved) == 5
    assert await held_at(target, config) == await held_at(local, config)
    again = await sync(source, target)
    assert (again.moved, again.kept, again.removed) == ([], 5, ())
    (tree / "a").write_bytes(b"99")
    (tree / "empty").unlink()
    await prepare()
    found = await sync(source, target)
    assert (found.moved, found.removed) == (["a"], ("empty",))
    assert await held_at(target, config) == await held_at(local, config)


@pytest.mark.parametrize("name", ["link", "link/inside"])
async def test_a_link_to_the_source_is_no_other_place(tree, tmp_path, site, name):
    (tmp_path / "link").symlink_to(tree)
    (tree / "z.tar").write_bytes(archive_of(".tar", {"member": b"m"}))
    places = {"source": f"file://{tree}", "target": f"file://{tmp_path}/{name}"}
    with pytest.raises(InvalidSpec, match="the destination is the source"):
        await site.make(**places, settings=REAL, unpack=True, delete=True).run()
    assert (tree / "z.tar").exists()


async def test_a_directory_becomes_a_file_and_a_file_a_directory_if_removals_are_asked_for(tmp_path, site):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("a/x", "a/y/z", "b", "other"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("first")
    target.mkdir()
    places = {"source": f"file://{source}", "target": f"file://{target}"}
    await site.make(**places, settings=REAL).run()
    shutil.rmtree(source / "a")
    (source / "a").write_text("a file now")
    (source / "b").unlink()
    (source / "b/new").mkdir(parents=True)
    (source / "b/new/one").write_text("in a directory now")
    refused = await site.make(**places, settings=REAL).run()
    assert len(refused.problems) == 2
    assert (target / "a/x").read_text() == "first"
    result = await site.make(**places, settings=REAL, delete=True).run()
    assert result.problems == ()
    assert sorted(result.removed) == ["a/x", "a/y/z", "b"]
    assert await held_at(places["target"], StoreConfig()) == {
        "a": b"a file now",
        "b/new/one": b"in a directory now",
        "other": b"first",
    }


async def test_what_the_source_still_has_is_not_moved_out_of_the_way(tmp_path, site, monkeypatch):
    """A listing that was cut: nothing is removed."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a").mkdir(parents=True)
    (source / "a/x").write_text("x")
    target.mkdir()
    (target / "a").write_text("in the way")
    places = {"source": f"file://{source}", "target": f"file://{target}"}

    async def stat(self, name):
        return Entry(name, 1, "t")

    monkeypatch.setattr(LocalStore, "stat", stat)
    with pytest.raises(Changed, match="leaves out files that are there"):
        await site.make(**places, settings=REAL, delete=True).run()
    assert (target / "a").read_text() == "in the way"


async def test_a_kill_leaves_no_half_file_in_a_directory(tree, tmp_path, site, monkeypatch):
    (tmp_path / "out").mkdir()
    real, calls = Path.replace, []

    def replace(self, target):
        calls.append(target)
        if len(calls) > 2:
            raise Killed
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    places = {"source": f"file://{tree}", "target": f"file://{tmp_path}/out/copy"}
    with pytest.raises(DEATH):
        await site.make(**places, settings=REAL).run()
    monkeypatch.undo()
    wanted = await held_at(f"file://{tree}", StoreConfig())
    there = await held_at(f"file://{tmp_path}/out/copy", StoreConfig())
    assert len(there) < len(wanted)
    assert all(wanted[name] == data for name, data in there.items())
    await site.make(**places, settings=REAL).run()
    assert await held_at(f"file://{tmp_path}/out/copy", StoreConfig()) == wanted
    shutil.rmtree(tmp_path / "out")
