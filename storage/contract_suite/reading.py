"""Reading: ranges, versions, what is missing."""

import asyncio

import pytest

from podferry.contract.errors import Changed, Corrupt, NotFound, Refused
from podferry.storage.contract_suite.inputs import PATIENCE, names
from podferry.storage.store import Store, StreamingStore


async def test_what_is_written_is_read(store: Store) -> None:
    """Any range of an object has the bytes that were written there."""
    await store.write("a/b", b"0123456789")
    assert bytes(await store.read("a/b")) == b"0123456789"
    assert bytes(await store.read("a/b", 3, 4)) == b"3456"
    assert bytes(await store.read("a/b", 7)) == b"789"
    assert bytes(await store.read("a/b", 0, 10)) == b"0123456789"
    assert bytes(await store.read("a/b", 9, 1)) == b"9"


async def test_reading_nothing_is_reading(store: Store) -> None:
    """An empty range is empty, also at the end; of a missing object it is `NotFound`."""
    await store.write("a", b"0123")
    assert bytes(await store.read("a", 2, 0)) == b""
    assert bytes(await store.read("a", 4)) == b""
    with pytest.raises(NotFound):
        await store.read("none", 0, 0)


@pytest.mark.parametrize(("start", "length"), [(0, 11), (5, 6), (10, 1), (25, 5)])
async def test_reading_past_the_end_is_corrupt(store: Store, start: int, length: int) -> None:
    """A range that is longer than the object is `Corrupt`, never a short answer."""
    await store.write("a", b"0123456789")
    with pytest.raises(Corrupt, match="requested"):
        await store.read("a", start, length)


async def test_a_missing_object_is_not_found(store: Store) -> None:
    """`stat` and `read` of a missing name, of a directory and below an object raise `NotFound`."""
    await store.write("a/b", b"1")
    for name in ("none", "a", "a/b/c", "a/none"):
        with pytest.raises(NotFound):
            await store.stat(name)
        with pytest.raises(NotFound):
            await store.read(name)


async def test_overwriting_changes_content_and_tag(store: Store) -> None:
    """Another version has another tag, and a read with the old one raises `Changed`."""
    await store.write("a", b"old")
    before = await store.stat("a")
    assert bytes(await store.read("a", tag=before.tag)) == b"old"
    await store.write("a", b"newer")
    assert bytes(await store.read("a")) == b"newer"
    assert (await store.stat("a")).tag != before.tag
    for start, length in ((0, None), (0, 2), (1, None), (0, 0)):
        with pytest.raises(Changed):
            await store.read("a", start, length, tag=before.tag)


async def test_who_names_no_version_reads_one_while_it_is_replaced(store: Store) -> None:
    """A read without tag and size is of one version, whichever, never a part of one or an error."""
    versions = [bytes([65 + i]) * 10 ** (1 + i % 3) for i in range(12)]
    await store.write("a/b", versions[0])
    found, was_read = set[bytes](), asyncio.Event()

    async def read_all() -> None:
        while True:
            found.add(bytes(await store.read("a/b")))
            was_read.set()
            await asyncio.sleep(0.01)  # a file that is open all the time cannot be replaced everywhere

    readers = [asyncio.ensure_future(read_all()) for _ in range(2)]
    try:
        for version in versions:
            await store.write("a/b", version)
            was_read.clear()  # nor is one read that is replaced all the time
            reading = asyncio.ensure_future(was_read.wait())
            await asyncio.wait([reading, *readers], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            reading.cancel()
    finally:
        for reader in readers:
            reader.cancel()
        ended = await asyncio.gather(*readers, return_exceptions=True)
    assert [error for error in ended if not isinstance(error, asyncio.CancelledError)] == []
    assert found <= set(versions)


async def test_an_object_of_another_size_than_listed_has_changed(store: Store) -> None:
    """A listing may be wrong; without tags only the size shows it."""
    await store.write("a", b"0123456789")
    for start, length in ((0, None), (0, 4), (4, 6), (0, 10), (7, None), (0, 0)):
        expected = b"0123456789"[start : None if length is None else start + length]
        assert bytes(await store.read("a", start, length, size=10)) == expected
        for size in (4, 11, 0):
            with pytest.raises(Changed, match="10 bytes"):
                await store.read("a", start, length, size=size)


async def test_calls_run_concurrently(store: Store) -> None:
    """Calls of one store run at the same time without mixing their objects."""
    await asyncio.gather(*(store.write(f"c/{i}", bytes([i]) * i) for i in range(24)))
    read = await asyncio.gather(*(store.read(f"c/{i}") for i in range(24)))
    assert [bytes(data) for data in read] == [bytes([i]) * i for i in range(24)]
    assert len(await names(store)) == 24


class Received:
    """What a stream has passed on."""

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, data: memoryview, position: int) -> None:
        """Take bytes, which come in order, and from the first one again after a lost connection."""
        assert position in {0, len(self.data)}
        self.data = self.data[:position] + bytes(data)


LONG = bytes(range(251)) * 20_000


async def test_a_stream_passes_on_what_is_read(store: Store) -> None:
    """A stream passes on exactly the bytes of its range, in order."""
    if not isinstance(store, StreamingStore):
        return
    await store.write("a", LONG)
    tag = (await store.stat("a")).tag
    for start, length in ((0, len(LONG)), (7, 3), (100, 3_000_000)):
        received = Received()
        await store.stream("a", start, length, tag, len(LONG), received)
        assert received.data == LONG[start : start + length]


async def test_a_stream_of_another_version_fails(store: Store) -> None:
    """A stream checks tag and size as a read does."""
    if not isinstance(store, StreamingStore):
        return
    await store.write("a", b"old")
    before = await store.stat("a")
    await store.write("a", b"newer")
    with pytest.raises(Changed):
        await store.stream("a", 0, 3, before.tag, before.size, Received())
    after = await store.stat("a")
    with pytest.raises((Changed, Corrupt)):
        await store.stream("a", 0, 9, after.tag, after.size, Received())
    with pytest.raises(NotFound):
        await store.stream("none", 0, 3, before.tag, before.size, Received())


async def test_a_stream_ends_with_the_error_of_what_it_is_passed_on_to(store: Store) -> None:
    """An error of the receiver ends the stream unchanged, and the store can still be used."""
    if not isinstance(store, StreamingStore):
        return
    await store.write("a", LONG)
    entry = await store.stat("a")

    def receive(data: memoryview, position: int) -> None:
        raise Refused.of("the volume is full")

    with pytest.raises(Refused, match="the volume is full"):
        await store.stream("a", 0, entry.size, entry.tag, entry.size, receive)
    assert bytes(await store.read("a")) == LONG
