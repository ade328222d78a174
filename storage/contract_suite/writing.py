"""Writing: whole or not at all, and exclusive creation."""

import asyncio
from collections.abc import Iterator

import pytest

from podferry.contract.errors import AlreadyExists
from podferry.storage.contract_suite.inputs import PATIENCE, names
from podferry.storage.store import Store, WriteMode


class Mine(Exception):
    """The error that a body raises."""


async def test_create_keeps_an_existing_object(store: Store) -> None:
    """`CREATE` never replaces an object: it raises `AlreadyExists`."""
    await store.write("a", b"first", WriteMode.CREATE)
    with pytest.raises(AlreadyExists):
        await store.write("a", b"second", WriteMode.CREATE)
    assert bytes(await store.read("a")) == b"first"
    await store.write("b", iter((b"in ", b"parts")), WriteMode.CREATE)
    assert bytes(await store.read("b")) == b"in parts"


async def test_of_many_creators_one_wins(store: Store) -> None:
    """Of creators at the same time one wins, if the store declares `exclusive_create`."""
    writes = [store.write("a/one", bytes([i]) * (i + 1), WriteMode.CREATE) for i in range(8)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    winners = [i for i, result in enumerate(results) if result is None]
    if store.exclusive_create:
        assert len(winners) == 1
        assert all(isinstance(result, AlreadyExists) for result in results if result is not None)
    assert bytes(await store.read("a/one")) in [bytes([i]) * (i + 1) for i in winners]


async def test_different_names_in_new_directories_are_created_at_once(store: Store) -> None:
    """Writers that all need the same new directories do not get into each other's way."""
    for number in range(6):
        created = [f"{number}/{name}" for name in ("0", "new/1", "new/deeper/2", "new/deeper/still/3")]
        await asyncio.gather(*(store.write(name, b"x", WriteMode.CREATE) for name in created))
        assert sorted([entry.name async for entry in store.entries(str(number))]) == created


async def test_a_chunked_body_arrives_in_order(store: Store) -> None:
    """A body of many chunks is one object with its chunks in order."""
    chunks = [bytes([i]) * (1 << 20) for i in range(12)]
    await store.write("big", iter(chunks))
    assert bytes(await store.read("big")) == b"".join(chunks)
    assert (await store.stat("big")).size == 12 << 20
    assert bytes(await store.read("big", (5 << 20) - 2, 4)) == b"\x04\x04\x05\x05"


@pytest.mark.parametrize("after", [0, 1, 12])
async def test_a_body_that_raises_leaves_no_trace(store: Store, after: int) -> None:
    """A body that raises leaves nothing new, and keeps the object that was there."""
    await store.write("old", b"old")
    error = Mine()

    def body() -> Iterator[bytes]:
        for _ in range(after):
            yield b"x" * (1 << 20)
        raise error

    for name in ("new", "old"):
        with pytest.raises(Mine) as caught:
            await store.write(name, body())
        assert caught.value is error
    with pytest.raises(Mine):
        await store.write("new", body(), WriteMode.CREATE)
    assert await names(store) == ["old"]
    assert bytes(await store.read("old")) == b"old"


@pytest.mark.parametrize("error", [OSError(5, "disk"), ValueError("value"), FileNotFoundError("file")])
async def test_errors_of_a_body_are_raised_unchanged(store: Store, error: Exception) -> None:
    """The body's own error is raised, not one of the store."""

    def body() -> Iterator[bytes]:
        yield b"x"
        raise error

    with pytest.raises(type(error)) as caught:
        await store.write("new", body())
    assert caught.value is error


async def test_a_cancelled_write_leaves_no_trace(store: Store) -> None:
    """A write that is cancelled just before its end leaves nothing."""
    reached, resume = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def body() -> Iterator[bytes]:
        for i in range(12):
            if i == 11:
                loop.call_soon_threadsafe(reached.set)
                asyncio.run_coroutine_threadsafe(resume.wait(), loop).result(timeout=PATIENCE)
            yield b"x" * (1 << 20)

    task = asyncio.create_task(store.write("new", body()))
    await asyncio.wait_for(reached.wait(), PATIENCE)
    task.cancel()
    await asyncio.sleep(0)
    resume.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(store) == []
