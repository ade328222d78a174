"""The contract on an imitation of OSS."""

import pytest

from podferry.contract.errors import InvalidSpec
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


def test_fsspec_does_not_open_it():
    """ossfs fails without its cache of listings, with a KeyError that no user understands."""
    with pytest.raises(InvalidSpec, match="cannot list without a cache"):
        open_store(Uri("oss", "bucket", "", (("engine", "fsspec"),)))
