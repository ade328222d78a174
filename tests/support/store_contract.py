"""What every store must do: imported by each test module that provides a `store` fixture."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import AlreadyExists, Changed, Corrupt, InvalidSpec, NotFound
from podferry.contract.file_names import name_problem
from podferry.storage.store import WriteMode
from tests.support.patience import PATIENCE

PART = 5 << 20
ODD_NAMES = [
    "with space",
    " leading",
    "trailing ",
    "per%cent",
    "per%20cent",
    "hash#tag",
    "question?mark=1&x=2",
    "plus+plus",
    "ünïcödé/日本語",
    "tilde~",
    "~home",
    "semi;colon,comma",
    "at@equals=",
    "quote'double\"",
    "star*[set]{a,b}",
    "back\\slash",
    "a:b",
    "<tag>&amp;",
    ".hidden/.x",
    "...",
]
REFUSED = {"az": "\\", "hdfs": ":", "webhdfs": ":"}
"""Characters that a store refuses in names: Azure would store a slash."""
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=30).filter(
    lambda name: name_problem(name) is None
)


@pytest.fixture
def refused_characters(store):
    """Those that the store does not take in a name; Azure would store a slash."""
    return REFUSED.get(store.uri.scheme, "")


async def names(store, prefix=""):
    return sorted([entry.name async for entry in store.entries(prefix)])


class Mine(Exception):
    """The error that a body raises."""


async def test_what_is_written_is_read(store):
    await store.write("a/b", b"0123456789")
    assert bytes(await store.read("a/b")) == b"0123456789"
    assert bytes(await store.read("a/b", 3, 4)) == b"3456"
    assert bytes(await store.read("a/b", 7)) == b"789"
    assert bytes(await store.read("a/b", 0, 10)) == b"0123456789"
    assert bytes(await store.read("a/b", 9, 1)) == b"9"


async def test_reading_nothing_is_reading(store):
    await store.write("a", b"0123")
    assert bytes(await store.read("a", 2, 0)) == b""
    assert bytes(await store.read("a", 4)) == b""
    with pytest.raises(NotFound):
        await store.read("none", 0, 0)


@pytest.mark.parametrize(("start", "length"), [(0, 11), (5, 6), (10, 1), (25, 5)])
async def test_reading_past_the_end_is_corrupt(store, start, length):
    await store.write("a", b"0123456789")
    with pytest.raises(Corrupt, match="requested"):
        await store.read("a", start, length)


async def test_empty_objects_are_objects(store):
    await store.write("dir/empty", b"")
    await store.write("dir/none", iter(()))
    await store.write("dir/full", b"x")
    assert (await store.stat("dir/empty")).size == 0
    assert bytes(await store.read("dir/empty")) == b""
    assert await names(store) == ["dir/empty", "dir/full", "dir/none"]
    assert await store.children("dir") == ["empty", "full", "none"]


async def test_listing_is_by_directory_and_relative_to_the_store(store):
    for name in ("a/b", "a/c/d", "ab", "z"):
        await store.write(name, name.encode())
    assert await names(store) == ["a/b", "a/c/d", "ab", "z"]
    assert await names(store, "a") == ["a/b", "a/c/d"]
    assert await names(store, "z") == []
    assert await names(store, "nowhere") == []
    assert await store.children() == ["a/", "ab", "z"]
    assert await store.children("a") == ["b", "c/"]
    assert await store.children("nowhere") == []


async def test_listing_and_stat_agree(store):
    await store.write("a/b", b"12345")
    listed = [entry async for entry in store.entries()]
    assert listed == [await store.stat("a/b")]
    assert listed[0].size == 5


async def test_a_missing_object_is_not_found(store):
    await store.write("a/b", b"1")
    for name in ("none", "a", "a/b/c", "a/none"):
        with pytest.raises(NotFound):
            await store.stat(name)
        with pytest.raises(NotFound):
            await store.read(name)


async def test_overwriting_changes_content_and_tag(store):
    await store.write("a", b"old")
    before = await store.stat("a")
    assert bytes(await store.read("a", tag=before.tag)) == b"old"
    await store.write("a", b"newer")
    assert bytes(await store.read("a")) == b"newer"
    assert (await store.stat("a")).tag != before.tag
    for start, length in ((0, None), (0, 2), (1, None), (0, 0)):
        with pytest.raises(Changed):
            await store.read("a", start, length, tag=before.tag)


async def test_an_object_of_another_size_than_listed_has_changed(store):
    """A listing may be wrong; without tags only the size shows it."""
    await store.write("a", b"0123456789")
    for start, length in ((0, None), (0, 4), (4, 6), (0, 10), (7, None), (0, 0)):
        expected = b"0123456789"[start : None if length is None else start + length]
        assert bytes(await store.read("a", start, length, size=10)) == expected
        for size in (4, 11, 0):
            with pytest.raises(Changed, match="10 bytes"):
                await store.read("a", start, length, size=size)


async def test_create_keeps_an_existing_object(store):
    await store.write("a", b"first", WriteMode.CREATE)
    with pytest.raises(AlreadyExists):
        await store.write("a", b"second", WriteMode.CREATE)
    assert bytes(await store.read("a")) == b"first"
    await store.write("b", iter((b"in ", b"parts")), WriteMode.CREATE)
    assert bytes(await store.read("b")) == b"in parts"


async def test_of_many_creators_one_wins(store):
    writes = [store.write("a/one", bytes([i]) * (i + 1), WriteMode.CREATE) for i in range(8)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    winners = [i for i, result in enumerate(results) if result is None]
    if store.exclusive_create:
        assert len(winners) == 1
        assert all(isinstance(result, AlreadyExists) for result in results if result is not None)
    assert bytes(await store.read("a/one")) in [bytes([i]) * (i + 1) for i in winners]


async def test_a_chunked_body_arrives_in_order(store):
    chunks = [bytes([i]) * (1 << 20) for i in range(12)]
    await store.write("big", iter(chunks))
    assert bytes(await store.read("big")) == b"".join(chunks)
    assert (await store.stat("big")).size == 12 << 20
    assert bytes(await store.read("big", (5 << 20) - 2, 4)) == b"\x04\x04\x05\x05"


@pytest.mark.parametrize("after", [0, 1, 12])
async def test_a_body_that_raises_leaves_no_trace(store, after):
    await store.write("old", b"old")
    error = Mine()

    def body():
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
async def test_errors_of_a_body_are_raised_unchanged(store, error):
    def body():
        yield b"x"
        raise error

    with pytest.raises(type(error)) as caught:
        await store.write("new", body())
    assert caught.value is error


async def test_a_cancelled_write_leaves_no_trace(store):
    reached, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def body():
        for i in range(12):
            if i == 11:
                loop.call_soon_threadsafe(reached.set)
                asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(timeout=PATIENCE)
            yield b"x" * (1 << 20)

    task = asyncio.create_task(store.write("new", body()))
    await asyncio.wait_for(reached.wait(), PATIENCE)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(store) == []


async def test_an_emptied_directory_is_not_a_child(store):
    for name in ("d/e/a", "d/b"):
        await store.write(name, b"x")
    await store.delete(["d/e/a"])
    assert await store.children("d") == ["b"]
    await store.delete(["d/b"])
    assert await store.children() == []


async def test_delete_ignores_missing_objects(store):
    for name in ("a/1", "a/2", "b"):
        await store.write(name, b"x")
    await store.delete(["none", "a/1", "a/none", "b"])
    await store.delete([])
    assert await names(store) == ["a/2"]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_round_trip(store, name, refused_characters):
    await round_trip(store, name, refused_characters)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
async def test_any_name_round_trips(store, name, refused_characters):
    await round_trip(store, name, refused_characters)


async def round_trip(store, name, refused_characters):
    if any(character in name for character in refused_characters):
        with pytest.raises(InvalidSpec):
            await store.write("dir/" + name, b"odd")
        return
    await store.write("dir/" + name, b"odd")
    await store.write("dir/" + name, b"odder")
    assert await names(store) == ["dir/" + name]
    first, slash, _ = name.partition("/")
    assert await store.children("dir") == [first + slash]
    assert (await store.stat("dir/" + name)).name == "dir/" + name
    assert bytes(await store.read("dir/" + name, 1, 3)) == b"dde"
    with pytest.raises(AlreadyExists):
        await store.write("dir/" + name, b"x", WriteMode.CREATE)
    await store.delete(["dir/" + name])
    assert await names(store) == []


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a", "a/", "a//b", "./a", "tab\tbed"])
async def test_names_that_leave_the_store_are_refused(store, name):
    with pytest.raises(InvalidSpec):
        await store.stat(name)
    with pytest.raises(InvalidSpec):
        await store.read(name)
    with pytest.raises(InvalidSpec):
        await store.write(name, b"x")
    with pytest.raises(InvalidSpec):
        await store.delete([name])


async def test_calls_run_concurrently(store):
    await asyncio.gather(*(store.write(f"c/{i}", bytes([i]) * i) for i in range(24)))
    read = await asyncio.gather(*(store.read(f"c/{i}") for i in range(24)))
    assert [bytes(data) for data in read] == [bytes([i]) * i for i in range(24)]
    assert len(await names(store)) == 24
