import pytest

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.oss.server import KEY_ID, KEY_SECRET, REGION, OssServer, serving

KEYS = {"OSS_ACCESS_KEY_ID": KEY_ID, "OSS_ACCESS_KEY_SECRET": KEY_SECRET, "OSS_REGION": REGION}


@pytest.fixture(scope="session")
def shared_oss():
    """An imitation of OSS without faults, for the contract."""
    with serving() as server:
        yield server


@pytest.fixture
def oss():
    """An imitation of OSS, to give faults to."""
    with serving(OssServer()) as server:
        yield server


@pytest.fixture
async def opened(oss, quick):
    """Opens stores of the bucket, with other variables if some are given."""
    stores = []

    def opened(key="", bucket="bucket", endpoint=None, limits=quick, **held):
        config = StoreConfig(endpoint=endpoint or oss.endpoint, credentials=held or KEYS)
        stores.append(open_store(Uri("oss", bucket, key), config, limits))
        return stores[-1]

    yield opened
    for store in stores:
        await store.close()
