"""`tests/storage/listing/test_dataset.py` has web pages in the place of objects."""

import pytest

from podferry.contract.errors import NotFound
from podferry.contract.manifest import Entry
from podferry.storage.listing.single_object import stat_file
from podferry.storage.memory.store import MemoryStore
from tests.support.memory_bucket import put


class KnowsPages(MemoryStore):
    async def stat_file(self, name):
        return Entry(f"file {name}", 1, "")


async def test_the_store_is_asked_in_the_way_that_it_knows(bucket):
    put(bucket, "d/a")
    store = MemoryStore(bucket / "d")
    assert await stat_file(store, "a") == await store.stat("a")
    with pytest.raises(NotFound):
        await stat_file(store, "b")
    assert (await stat_file(KnowsPages(bucket / "d"), "a")).name == "file a"
