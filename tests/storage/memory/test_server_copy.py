import pytest

from podferry.contract.errors import Corrupt, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import Content, Fault, MemoryStore

LOST = Unavailable.of("the connection was reset")


@pytest.fixture
def store():
    return MemoryStore(parse_uri("memory://m/base"), Content())


@pytest.mark.parametrize("fault", [Fault("copy", "b", corrupt=1), Fault("copy", "b", truncate=2)])
async def test_a_damaged_copy_is_noticed(store, fault):
    await store.write("a", b"1234")
    store.faults.append(fault)
    with pytest.raises(Corrupt, match="is not a copy of its source"):
        await store.server_copy.copy("a", "b")
    await store.server_copy.copy("a", "b")
    assert bytes(await store.read("b")) == b"1234"


@pytest.mark.parametrize("after", [False, True])
async def test_a_response_may_be_lost_before_or_after_the_copy(store, after):
    await store.write("a", b"1")
    store.faults.append(Fault("copy", error=LOST, after=after))
    with pytest.raises(Unavailable):
        await store.server_copy.copy("a", "b")
    assert ("base/b" in store.content.objects) is after


async def test_copies_are_recorded_by_their_target(store):
    with pytest.raises(NotFound):
        await store.server_copy.copy("a", "b")
    assert store.content.calls == [("copy", "b")]
