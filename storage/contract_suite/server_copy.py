"""What every store that copies objects itself must do: imported by modules that provide a `store` fixture."""

import asyncio
import os

import pytest

from podferry.contract.errors import InvalidSpec, NotFound
from podferry.storage.contract_suite.inputs import ODD_NAMES, names


async def test_a_copy_has_the_bytes_and_the_source_stays(store):
    """A copy has the size and the bytes of its source, which stays."""
    data = os.urandom(3 << 20)
    await store.write("a/b", data)
    assert (await store.server_copy.copy("a/b", "c/d")).size == len(data)
    assert bytes(await store.read("c/d")) == data
    assert bytes(await store.read("a/b")) == data
    assert await names(store) == ["a/b", "c/d"]


async def test_a_copy_does_not_change_with_its_source(store):
    """A copy is an object of its own: it outlives its source."""
    await store.write("a", b"old")
    await store.server_copy.copy("a", "b")
    await store.write("a", b"newer")
    assert bytes(await store.read("b")) == b"old"
    await store.delete(["a"])
    assert bytes(await store.read("b")) == b"old"


async def test_a_copy_replaces_an_object(store):
    """A copy replaces what has its name."""
    await store.write("a", b"new")
    await store.write("b", b"older")
    await store.server_copy.copy("a", "b")
    assert bytes(await store.read("b")) == b"new"


async def test_an_empty_object_is_copied(store):
    """An object without bytes is copied too."""
    await store.write("dir/empty", b"")
    await store.server_copy.copy("dir/empty", "dir/copy")
    assert (await store.stat("dir/copy")).size == 0


async def test_a_missing_source_is_not_found(store):
    """A source that is missing or a directory raises `NotFound`, and nothing is created."""
    await store.write("a/b", b"1")
    for name in ("none", "a", "a/none"):
        with pytest.raises(NotFound):
            await store.server_copy.copy(name, "c")
    assert await names(store) == ["a/b"]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_are_copied(store, name):
    """Source and copy may have any name."""
    await store.write("from/" + name, b"odd")
    await store.server_copy.copy("from/" + name, "to/" + name)
    assert bytes(await store.read("to/" + name)) == b"odd"


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a/"])
async def test_copies_that_leave_the_store_are_refused(store, name):
    """Neither name leads out of the store."""
    await store.write("a", b"1")
    with pytest.raises(InvalidSpec):
        await store.server_copy.copy(name, "b")
    with pytest.raises(InvalidSpec):
        await store.server_copy.copy("a", name)


async def test_copies_run_concurrently(store):
    """Copies run at the same time."""
    await store.write("a", b"1")
    await asyncio.gather(*(store.server_copy.copy("a", f"c/{number}") for number in range(24)))
    assert len(await names(store, "c")) == 24


async def test_an_object_uploaded_in_parts_is_copied(store):
    """An object that was uploaded in parts is copied like any other."""
    if store.multipart is None:
        await store.write("a", iter([b"1" * (5 << 20)] * 2))
    else:
        upload = await store.multipart.begin("a", 5 << 20)
        parts = [await store.multipart.send("a", upload, number, b"1" * (5 << 20)) for number in (1, 2)]
        await store.multipart.complete("a", upload, parts)
    await store.server_copy.copy("a", "b")
    assert bytes(await store.read("b")) == b"1" * (10 << 20)
