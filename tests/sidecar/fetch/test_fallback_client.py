import pytest

from podferry.contract.errors import Changed, NotFound, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fallback_client import RetryingReader
from podferry.sidecar.fetch.rate_limit import MIN_SHARE, RateLimit
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.memory.store import Content, Fault, MemoryStore


@pytest.fixture
def store():
    return MemoryStore(parse_uri("memory://fallback/d"), Content())


@pytest.fixture
def reader(store):
    return RetryingReader(store, PrefetchSettings(attempts=1), TransferCounters())


async def listed(store):
    await store.write("a", b"0123456789")
    return await store.stat("a")


async def test_a_range_is_exact(store, reader):
    entry = await listed(store)
    assert bytes(await reader.fetch(entry, 3, 4)) == b"3456"
    assert bytes(await reader.fetch(entry, 0, 10)) == b"0123456789"


async def test_another_version_is_changed_by_name(store, reader):
    entry = await listed(store)
    await store.write("a", b"9876543210")
    with pytest.raises(Changed, match="memory://fallback/d/a"):
        await reader.fetch(entry, 0, 10)


async def test_without_a_tag_the_size_decides_and_a_missing_object_is_not_found(store, reader):
    await listed(store)
    for size in (9, 11):
        with pytest.raises(Changed):
            await reader.fetch(Entry("a", size), 0, size)
    with pytest.raises(NotFound):
        await reader.fetch(Entry("b", 11), 0, 11)


async def test_an_outage_may_last_longer_than_the_attempts_where_a_failure_is_final(store):
    entry = await listed(store)
    outage = Unavailable.of("the store does not answer")
    store.faults += [Fault("read", error=outage), Fault("read", error=outage)]
    patient = PrefetchSettings(attempts=1, patience_seconds=60.0)
    assert bytes(await RetryingReader(store, patient, TransferCounters()).fetch(entry, 0, 1)) == b"0"


async def test_each_request_waits_for_the_limit(store):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    entry = await listed(store)
    store.faults.append(Fault("read", error=Unavailable.of("the store does not answer")))
    limit = RateLimit(4 * MIN_SHARE, lambda: 0.0, sleep)
    await limit.take(4 * MIN_SHARE)
    reader = RetryingReader(store, PrefetchSettings(attempts=2), TransferCounters(), limit)
    assert bytes(await reader.fetch(entry, 0, 10)) == b"0123456789"
    assert waited == [1.0, 1.0 + 10 / (4 * MIN_SHARE)]


async def test_a_temporary_error_is_raised_unwrapped(store, reader):
    entry = await listed(store)
    failure = Unavailable.of("the store does not answer")
    store.faults.append(Fault("read", error=failure))
    with pytest.raises(Unavailable) as caught:
        await reader.fetch(entry, 0, 1)
    assert caught.value is failure
    assert bytes(await reader.fetch(entry, 0, 1)) == b"0"
