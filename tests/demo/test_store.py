"""The demo's embedded store does what a store must."""

from __future__ import annotations

import itertools
import os

import pytest

from demo.store import BUCKET, environment, object_store
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

COUNTER = itertools.count()


@pytest.fixture(scope="module")
def endpoint():
    with object_store() as url:
        yield url


@pytest.fixture
async def store(endpoint):
    uri = Uri("s3", BUCKET, f"run {os.getpid()}/n+{next(COUNTER)} %20")
    store = open_store(uri, StoreConfig(credentials=environment(endpoint)))
    yield store
    await store.close()
