"""Listing, and deleting what is listed."""

from podferry.storage.contract_suite.inputs import names
from podferry.storage.store import Store


async def test_empty_objects_are_objects(store: Store) -> None:
    """An object without bytes is stored, listed and read."""
    await store.write("dir/empty", b"")
    await store.write("dir/none", iter(()))
    await store.write("dir/full", b"x")
    assert (await store.stat("dir/empty")).size == 0
    assert bytes(await store.read("dir/empty")) == b""
    assert await names(store) == ["dir/empty", "dir/full", "dir/none"]
    assert await store.children("dir") == ["empty", "full", "none"]


async def test_listing_is_by_directory_and_relative_to_the_store(store: Store) -> None:
    """A prefix is a directory, never the start of a name; names are relative to the store."""
    for name in ("a/b", "a/c/d", "ab", "z"):
        await store.write(name, name.encode())
    assert await names(store) == ["a/b", "a/c/d", "ab", "z"]
    assert await names(store, "a") == ["a/b", "a/c/d"]
    assert await names(store, "z") == []
    assert await names(store, "nowhere") == []
    assert await store.children() == ["a/", "ab", "z"]
    assert await store.children("a") == ["b", "c/"]
    assert await store.children("nowhere") == []


async def test_listing_and_stat_agree(store: Store) -> None:
    """A listing has the same size and tag as `stat`."""
    await store.write("a/b", b"12345")
    listed = [entry async for entry in store.entries()]
    assert listed == [await store.stat("a/b")]
    assert listed[0].size == 5


async def test_an_emptied_directory_is_not_a_child(store: Store) -> None:
    """A directory is there only while it has objects."""
    for name in ("d/e/a", "d/b"):
        await store.write(name, b"x")
    await store.delete(["d/e/a"])
    assert await store.children("d") == ["b"]
    await store.delete(["d/b"])
    assert await store.children() == []


async def test_delete_ignores_missing_objects(store: Store) -> None:
    """Deleting removes what is there, and names that are not there are no error."""
    for name in ("a/1", "a/2", "b"):
        await store.write(name, b"x")
    await store.delete(["none", "a/1", "a/none", "b"])
    await store.delete([])
    assert await names(store) == ["a/2"]
