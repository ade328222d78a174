import asyncio

import pytest

from podferry.contract.errors import Throttled, Unavailable
from podferry.storage.memory.store import Fault
from podferry.storage.store import WriteMode
from tests.support.memory_bucket import Killed


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
