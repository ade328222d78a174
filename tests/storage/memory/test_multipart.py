import pytest

from podferry.contract.errors import InvalidSpec, NotFound, Unavailable
from podferry.storage.memory.store import Fault
from tests.support.memory_bucket import Killed

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
