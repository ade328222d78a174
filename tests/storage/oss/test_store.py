"""The contract on an imitation of OSS."""

import pytest

from podferry.contract.uri import Uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.storage.oss.conftest import KEYS


@pytest.fixture
async def store(shared_oss, fresh, quick):
    store = open_store(Uri("oss", "bucket", fresh), StoreConfig(shared_oss.endpoint, credentials=KEYS), quick)
    yield store
    await store.close()
