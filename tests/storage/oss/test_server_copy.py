"""Copies at an imitation of OSS."""

import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ChecksumKind
from podferry.storage.contract_suite.server_copy import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.oss.server_copy import OssServerCopy
from podferry.storage.store import StoreConfig
from tests.storage.oss.conftest import KEYS


@pytest.fixture
async def store(shared_oss, fresh, quick):
    store = open_store(Uri("oss", "bucket", fresh), StoreConfig(shared_oss.endpoint, credentials=KEYS), quick)
    yield store
    await store.close()


async def test_the_checksum_of_a_copy_is_compared(store):
    await store.write("a", b"1" * 1000)
    copied = await store.server_copy.copy("a", "b")
    assert copied.checksum.kind is ChecksumKind.CRC64XZ


class Silent:
    """A client of a server that does not say the size."""

    def __init__(self, store):
        self.access = store._client.access

    async def send(self, request):
        class Response:
            headers = {}  # noqa: RUF012

        return Response


async def test_a_copy_of_unknown_size_is_not_trusted(store):
    with pytest.raises(Unavailable, match="did not say the size"):
        await OssServerCopy(Silent(store)).copy("a", "b")
