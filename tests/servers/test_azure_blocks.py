"""Uploads in blocks to Azurite, which checks signatures and MD5."""

import pytest

from podferry.contract.errors import AccessDenied, BucketNotFound, FerryError, NotFound
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.multipart import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY

KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=5 << 20)
PART = 1 << 20


@pytest.fixture
def part():
    return PART


@pytest.fixture
def independent():
    return False


@pytest.fixture
async def reopen(azurite, fresh):
    stores = []

    def reopen(bucket="bucket", keys=KEYS):
        config = StoreConfig(endpoint=azurite, credentials=keys)
        stores.append(open_store(Uri("az", bucket, fresh), config, LIMITS))
        return stores[-1]

    yield reopen
    for store in stores:
        await store.close()


async def test_damaged_blocks_are_refused(store, data, monkeypatch):
    upload = await store.multipart.begin("big", PART)
    wrong = type("Wrong", (), {"digest": staticmethod(lambda: bytes(16))})
    monkeypatch.setattr("podferry.storage.azure.blocks.hashlib.md5", lambda *_, **__: wrong)
    with pytest.raises(FerryError, match="HTTP 400"):  # `Md5Mismatch` at Azure, `InvalidOperation` here
        await store.multipart.send("big", upload, 1, data[0])


async def test_blocks_next_to_those_of_the_engine(store, data):
    """All identifiers of a blob have one length; the engine's own upload may have been cut."""
    upload = await store.multipart.begin("big", PART)
    parts = await send_all(store, "big", upload, data)  # noqa: F405
    await store.write("big", iter([b"x" * (5 << 20), b"y"]))
    with pytest.raises(NotFound, match="Start it again"):
        await store.multipart.complete("big", upload, parts)
    upload = await store.multipart.begin("big", PART)
    await store.multipart.complete("big", upload, await send_all(store, "big", upload, data))  # noqa: F405
    assert bytes(await store.read("big")) == b"".join(data)


async def test_wrong_credentials_and_containers_are_named(reopen, data):
    known = await reopen().multipart.begin("big", PART)
    blocks = reopen(keys={**KEYS, "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}).multipart
    with pytest.raises(AccessDenied):
        await blocks.begin("big", PART)
    with pytest.raises(NotFound, match="Start it again"):  # its first block cannot be seen
        await blocks.send("big", known, 1, data[0])
    with pytest.raises(BucketNotFound):
        await reopen("no-such-container").multipart.begin("big", PART)
