import pytest

from podferry.contract.cache_api import Filling, Holder
from podferry.contract.errors import EmptyDataset, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.holder.client import HolderClient
from podferry.storage.holder.listing import open_held_listing
from podferry.storage.holder.store import HolderStore
from podferry.storage.memory.store import Fault, MemoryStore
from podferry.storage.store import StoreConfig
from tests.support.holder_site import running_holder

GONE = Fault("entries", error=Unavailable.of("the store does not respond"), times=99)


def calls(content):
    return {call for call, _ in content.calls}


async def listed(holder, uri, *, frozen=False, **more):
    return await open_held_listing(holder, uri, StoreConfig(), lambda manifest: frozen, **more)


@pytest.fixture
async def holder(content, tmp_path):
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        await stage.wait(600)
        while stage.complete is None:
            await stage.wait(0.01)
        content.calls.clear()
        yield holder


async def test_the_source_is_listed_and_files_are_the_holders(holder, content):
    content.objects["d/new"] = b"new"
    listing = await listed(holder, content.uri)
    assert {entry.name for entry in listing.entries} == {"a/1", "a/2", "b", "new"}
    known = {entry.name for entry in listing.entries if listing.checksum_of(entry) is not None}
    assert known == {"a/1", "a/2", "b"}
    assert isinstance(listing.store, HolderStore)
    assert isinstance(listing.origin, MemoryStore)
    await listing.store.close()


async def test_a_frozen_dataset_is_not_listed(holder, content):
    listing = await listed(holder, content.uri, frozen=True)
    assert {entry.name for entry in listing.entries} == {"a/1", "a/2", "b"}
    assert calls(content) == set()
    await listing.store.close()


async def test_a_source_that_does_not_respond_is_listed_by_the_holder(holder, content):
    content.faults.append(GONE)
    listing = await listed(holder, content.uri)
    assert {entry.name for entry in listing.entries} == {"a/1", "a/2", "b"}
    assert bytes(await listing.store.read("a/1")) == b"one"
    await listing.store.close()


async def test_a_source_that_is_not_away_is_to_be_asked_again(holder, content, counted):
    content.faults.append(GONE)
    with pytest.raises(Unavailable):
        await listed(holder, content.uri, is_away=lambda: False)
    assert counted.open == 0


async def test_what_the_source_lists_is_said_at_once(holder, content):
    seen = []
    listing = await listed(holder, content.uri, on_entry=lambda store, entry: seen.append(entry.name))
    assert seen == ["a/1", "a/2", "b"]
    await listing.store.close()


async def test_a_source_that_is_empty_now_is_an_error(holder, content):
    content.objects.clear()
    with pytest.raises(EmptyDataset):
        await listed(holder, content.uri)


async def test_without_a_holder_the_source_is_used(content):
    listing = await listed(Holder("http://127.0.0.1:9"), content.uri)
    assert isinstance(listing.store, MemoryStore)
    await listing.store.close()


async def test_a_holder_of_other_datasets_is_not_used(holder, content):
    listing = await listed(holder, parse_uri(f"{content.uri}/a"))
    assert isinstance(listing.store, MemoryStore)
    await listing.store.close()


async def test_a_single_object_is_relative_to_its_parent(content, tmp_path):
    uri = content.uri / "a/1"
    async with running_holder(uri, tmp_path / "held") as (_, holder):
        listing = await listed(holder, uri, frozen=True)
        [entry] = listing.entries
        assert bytes(await listing.origin.read(entry.name)) == b"one"
        assert bytes(await listing.store.read(entry.name)) == b"one"
        await listing.store.close()


async def test_a_wait_is_logged_less_and_less_often(holder, content, monkeypatch):
    dataset, logged = HolderClient.dataset, []

    async def filling(self, uri, on_filling):
        for number in range(1, 10):
            on_filling(Filling(10 << 20, number << 20))
        return await dataset(self, uri, on_filling)

    monkeypatch.setattr(HolderClient, "dataset", filling)
    monkeypatch.setattr("podferry.storage.holder.listing.warn", lambda event, **more: logged.append(more))
    await (await listed(holder, content.uri)).store.close()
    assert [one["done"] for one in logged] == [f"{done}.0 MiB of 10.0 MiB" for done in (1, 2, 4, 8)]


class Counted(MemoryStore):
    """Counts the stores that are open."""

    open = 0

    def __init__(self, uri):
        super().__init__(uri)
        Counted.open += 1

    async def close(self):
        Counted.open -= 1
        await super().close()


@pytest.fixture
def counted(monkeypatch):
    for module in ("podferry.storage.holder.listing", "podferry.storage.listing.dataset"):
        monkeypatch.setattr(f"{module}.open_store", lambda uri, config: Counted(uri))
    return Counted


async def test_what_the_holder_has_can_be_read_while_the_source_is_listed(holder, content):
    seen = []

    def on_held(store, manifest):
        assert calls(content) == set()
        seen.append((store, [entry.name for entry in manifest.entries]))

    listing = await listed(holder, content.uri, on_held=on_held)
    assert seen == [(listing.store, ["a/1", "a/2", "b"])]
    await listing.store.close()


async def test_a_frozen_dataset_is_not_announced(holder, content):
    seen = []
    listing = await listed(
        holder, content.uri, frozen=True, on_held=lambda store, manifest: seen.append(store)
    )
    assert seen == []
    await listing.store.close()


async def test_one_store_of_the_source_stays_open(holder, content, counted):
    listing = await listed(holder, content.uri)
    assert counted.open == 1
    await listing.store.close()
    assert counted.open == 0


@pytest.mark.parametrize("failure", ["empty", "away"])
async def test_no_store_stays_open_after_a_failure(holder, content, counted, failure):
    if failure == "empty":
        content.objects.clear()
        with pytest.raises(EmptyDataset):
            await listed(holder, content.uri)
    else:
        content.faults.append(GONE)
        await (await listed(holder, content.uri)).store.close()
    assert counted.open == 0
