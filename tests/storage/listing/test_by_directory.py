import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.errors import Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing import by_directory
from podferry.storage.listing.by_directory import CONCURRENCY, list_entries, splitting_depth
from podferry.storage.memory.store import Content, Fault, MemoryStore
from podferry.storage.object_names import join

NAMES = st.from_regex(r"([ab]{1,2}/){0,3}[a-c]{1,3}", fullmatch=True)


class Directories(MemoryStore):
    """Lists one directory; records its calls and how many ran in parallel."""

    def __init__(self, names, hidden=()):
        super().__init__(parse_uri("memory://directories/d"), Content())
        self.content.objects.update({f"d/{name}": b"1" for name in names})
        self.calls, self.hidden, self.running, self.most = [], hidden, 0, 0

    async def entries(self, prefix=""):
        self.calls.append(("entries", prefix))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        try:
            async for entry in super().entries(prefix):
                yield entry
        finally:
            self.running -= 1

    async def list_directory(self, prefix=""):
        self.calls.append(("list_directory", prefix))
        children = [child for child in await self.children(prefix) if child not in self.hidden]
        files = [join(prefix, child) for child in children if not child.endswith("/")]
        below = [child.rstrip("/") for child in children if child.endswith("/")]
        return [await self.stat(name) for name in files], below


def shorten(patch):
    """Listings are long from 6 objects on, directories large enough from 2 on."""
    for name, value in (("LONG_LISTING_OBJECTS", 6), ("MIN_DIRECTORY_OBJECTS", 2), ("MAX_DIRECTORIES", 12)):
        patch.setattr(by_directory, name, value)


@pytest.fixture
def short(monkeypatch):
    shorten(monkeypatch)


async def plainly(store):
    return sorted([entry async for entry in MemoryStore.entries(store)])


async def both(store):
    return sorted(await list_entries(store)) == await plainly(store)


@given(st.sets(NAMES, max_size=40))
@settings(deadline=None)
def test_both_ways_of_listing_find_the_same(names):
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        assert asyncio.run(both(Directories(names)))


async def test_large_directories_are_listed_in_parallel(short):
    store = Directories([f"{a}/{b}/{n}" for a in "abc" for b in "def" for n in range(4)] + ["z"])
    assert sorted(await list_entries(store)) == await plainly(store)
    assert store.calls[:2] == [("entries", ""), ("list_directory", "")]
    assert set(store.calls[2:5]) == {
        ("list_directory", "a"),
        ("list_directory", "b"),
        ("list_directory", "c"),
    }
    assert sorted(store.calls[5:]) == [("entries", f"{a}/{b}") for a in "abc" for b in "def"]
    assert store.most == CONCURRENCY


async def test_many_small_directories_are_not_listed_one_by_one(short):
    store = Directories([f"{number:03}/x" for number in range(100)])
    await list_entries(store)
    assert store.calls == [("entries", "")]


async def test_too_many_directories_are_listed_flat(short):
    store = Directories([f"a/{number}" for number in range(6)] + [f"b{number}/x" for number in range(20)])
    assert sorted(await list_entries(store)) == await plainly(store)
    assert store.calls == [("entries", ""), ("list_directory", ""), ("entries", "")]


async def test_an_object_in_no_listed_directory_is_found(short):
    store = Directories([f"{a}/{n}" for a in "ab" for n in range(4)], hidden=("a/",))
    assert sorted(await list_entries(store)) == await plainly(store)


async def test_the_first_failure_cancels_the_others_and_is_raised(short):
    store = Directories([f"{a}/{n}" for a in "abcdefg" for n in range(4)])
    store.faults.append(Fault("entries", "c", error=Unavailable.of("gone")))
    with pytest.raises(Unavailable, match="gone"):
        await list_entries(store)


@pytest.mark.parametrize(
    ("names", "depth"),
    [
        (["x"] * 6, 0),
        (["a/x"] * 5 + ["x"], 0),
        (["a/x"] * 6, 1),
        (["a/x"] * 3 + ["b/x"] * 3, 1),
        (["a/x", "b/x", "c/x", "d/x"], 0),
        (["a/b/x"] * 6, 2),
        (["a/b/x", "a/c/x", "a/d/x", "a/e/x"], 1),
    ],
)
def test_splitting_depth(short, names, depth):
    assert splitting_depth([Entry(name, 1) for name in names]) == depth


async def test_a_directory_listing_agrees_with_the_flat_one(fresh_s3, config, quick):
    store = open_store(fresh_s3, config, quick)
    names = [*(f"a b/{n}" for n in range(3)), "ä%/x/y", "z+z", "a b.txt", "empty"]
    for name in names:
        await store.write(name, b"" if name == "empty" else name.encode())
    listed = {entry.name: entry async for entry in store.entries()}
    objects, directories = await store.list_directory()
    assert {entry.name: entry for entry in objects} == {
        name: listed[name] for name in ("z+z", "a b.txt", "empty")
    }
    assert sorted(directories) == ["a b", "ä%"]
    objects, directories = await store.list_directory("a b")
    assert sorted(objects) == [listed[f"a b/{n}"] for n in range(3)]
    assert await store.list_directory("ä%") == ([], ["x"])
    assert isinstance(store, by_directory.ListsByDirectory)
    await store.close()


async def test_a_long_listing_of_an_object_store(s3, fresh_s3, config, quick, short):
    store = open_store(fresh_s3, config, quick)
    for folder, number in itertools.product("abc", range(4)):
        s3.put_object(Bucket="bucket", Key=f"{fresh_s3.key}/{folder}/{number}", Body=b"1")
    for marker in ("a/", "m/", ""):
        s3.put_object(Bucket="bucket", Key=f"{fresh_s3.key}/{marker}", Body=b"")
    assert sorted(await list_entries(store)) == sorted([entry async for entry in store.entries()])
    await store.close()
