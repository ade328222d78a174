import asyncio

import pytest

from podferry.contract.errors import InvalidSpec, NotFound, Throttled, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.memory.store import Fault, MemoryStore
from podferry.storage.store import WriteMode


@pytest.fixture
def store(fresh):
    return MemoryStore(
        parse_uri("memory://faults-" + fresh.replace("/", "-").replace(" ", "").replace("%", ""))
    )


class Killed(BaseException):
    """The process dies."""


async def test_stores_of_one_name_share_their_content(fresh):
    one, two = (open_store(parse_uri("memory://shared") / fresh) for _ in range(2))
    await one.write("a", b"x")
    assert bytes(await two.read("a")) == b"x"
    await one.close()
    assert bytes(await two.read("a")) == b"x"
    below = open_store(parse_uri("memory://shared") / fresh / "d")
    await below.write("b", b"y")
    assert sorted([entry.name async for entry in one.entries()]) == ["a", "d/b"]


async def test_a_fault_strikes_only_the_calls_that_it_matches(store):
    store.faults.append(Fault("write", "a/*", times=2, error=Unavailable.of("down")))
    await store.write("b", b"x")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await store.write("a/deep/er", b"x")
    await store.write("a/deep/er", b"x")
    assert store.content.objects == {"b": b"x", "a/deep/er": b"x"}
    assert store.content.calls == [("write", "b"), *[("write", "a/deep/er")] * 3]


async def test_a_fault_can_skip_calls(store):
    await store.write("a", b"x")
    store.faults.append(Fault("read", skip=1, error=Throttled.of("slow")))
    await store.read("a")
    with pytest.raises(Throttled):
        await store.read("a")
    await store.read("a")


@pytest.mark.parametrize("call", ["entries", "children", "stat", "read", "write", "delete"])
async def test_every_call_can_fail(store, call):
    await store.write("a", b"x")
    store.faults.append(Fault(call, error=Unavailable.of("down")))

    async def entries():
        return [entry async for entry in store.entries()]

    calls = {
        "entries": entries,
        "children": store.children,
        "stat": lambda: store.stat("a"),
        "read": lambda: store.read("a"),
        "write": lambda: store.write("a", b"y"),
        "delete": lambda: store.delete(["a"]),
    }
    with pytest.raises(Unavailable):
        await calls[call]()
    await calls[call]()


@pytest.mark.parametrize(("after", "left"), [(False, {}), (True, {"a": b"x"})])
async def test_death_comes_before_or_after_the_effect(store, after, left):
    store.faults.append(Fault("write", error=Killed(), after=after))
    with pytest.raises(Killed):
        await store.write("a", b"x", WriteMode.CREATE)
    assert store.content.objects == left


async def test_reads_can_return_wrong_bytes(store):
    await store.write("a", b"0123")
    store.faults += [Fault("read", truncate=2), Fault("read", corrupt=1)]
    assert bytes(await store.read("a")) == b"01"
    assert bytes(await store.read("a")) == b"0\xce23"
    assert bytes(await store.read("a")) == b"0123"


async def test_listings_can_be_truncated(store):
    for name in "abc":
        await store.write(name, b"x")
    store.faults += [Fault("entries", truncate=1), Fault("children", truncate=2)]
    assert [entry.name async for entry in store.entries()] == ["a"]
    assert await store.children() == ["a", "b"]


async def test_a_call_can_wait_for_an_event(store):
    gate = asyncio.Event()
    store.faults.append(Fault("write", wait=gate))
    task = asyncio.create_task(store.write("a", b"x"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert store.content.calls == [("write", "a")]
    assert store.content.objects == {}
    gate.set()
    await task
    assert store.content.objects == {"a": b"x"}


PART_CALLS = {
    "begin": lambda parts, upload, receipt: parts.begin("a", 4),
    "send": lambda parts, upload, receipt: parts.send("a", upload, 2, b"x"),
    "complete": lambda parts, upload, receipt: parts.complete("a", upload, [receipt]),
    "abort": lambda parts, upload, receipt: parts.abort("a", upload),
}


async def started(store):
    upload = await store.multipart.begin("a", 4)
    return upload, await store.multipart.send("a", upload, 1, b"0123")


@pytest.mark.parametrize("call", PART_CALLS)
async def test_every_multipart_call_can_fail(store, call):
    upload, receipt = await started(store)
    store.faults.append(Fault(call, error=Unavailable.of("down")))
    before = (
        dict(store.content.objects),
        list(store.content.uploads),
        len(store.content.uploads[upload].parts),
    )
    with pytest.raises(Unavailable):
        await PART_CALLS[call](store.multipart, upload, receipt)
    after = (
        dict(store.content.objects),
        list(store.content.uploads),
        len(store.content.uploads[upload].parts),
    )
    assert before == after
    await PART_CALLS[call](store.multipart, upload, receipt)


async def test_responses_to_multipart_calls_can_be_lost(store):
    upload, receipt = await started(store)
    store.faults += [Fault(call, error=Killed(), after=True) for call in PART_CALLS]
    for call in ("begin", "send", "complete"):
        with pytest.raises(Killed):
            await PART_CALLS[call](store.multipart, upload, receipt)
    assert store.content.objects == {"a": b"0123"}
    await store.multipart.complete("a", upload, [receipt])
    (other,) = store.content.uploads
    with pytest.raises(Killed):
        await store.multipart.abort("a", other)
    assert store.content.uploads == {}


@pytest.mark.parametrize("call", ["send", "complete"])
async def test_uploads_can_be_forgotten(store, call):
    upload, receipt = await started(store)
    store.faults.append(Fault(call, forget=True))
    with pytest.raises(NotFound, match="Start it again"):
        await PART_CALLS[call](store.multipart, upload, receipt)
    assert store.content.uploads == {}


async def test_parts_can_be_damaged_by_number(store):
    upload, _ = await started(store)
    store.faults.append(Fault("send", "a#2", corrupt=0))
    await store.multipart.send("a", upload, 1, b"4567")
    with pytest.raises(Unavailable, match="arrived damaged"):
        await store.multipart.send("a", upload, 2, b"x")
    await store.multipart.send("a", upload, 2, b"x")
    assert store.content.uploads[upload].parts == {1: b"4567", 2: b"x"}
    assert store.content.calls[-3:] == [("send", "a#1"), ("send", "a#2"), ("send", "a#2")]


async def test_a_memory_store_is_as_strict_as_a_server(store):
    upload, receipt = await started(store)
    short = await store.multipart.send("a", upload, 1, b"012")
    last = await store.multipart.send("a", upload, 2, b"4")
    with pytest.raises(NotFound, match="part 1 is missing"):
        await store.multipart.complete("a", upload, [receipt, last])
    with pytest.raises(InvalidSpec, match="parts this small"):
        await store.multipart.complete("a", upload, [short, last])
    with pytest.raises(NotFound):
        await store.multipart.send("b", upload, 1, b"x")
    assert store.content.objects == {}
