"""What the connection pool sends to a DataNode of Apache Hadoop."""

import pytest

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from tests.support.request_builder_contract import *  # noqa: F403


@pytest.fixture
async def store(hadoop, fresh):
    store = open_store(Uri("webhdfs", hadoop.web, fresh))
    yield store
    await store.close()


async def test_a_file_of_the_same_size_under_the_same_name_is_another_one(store, listed, client):
    await store.write("a", b"old")
    entry = await listed("a")
    await store.write("a", b"new")
    status, plain, _, _ = await client.get(entry)
    assert (status, plain) == (404, False)
