import msgspec
import pytest
from aiohttp import web

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.scripted_s3 import DONE, KNOWS, RECEIPT, STARTED, Server, there
from tests.support.store_calls import KEYS


@pytest.fixture
async def opened(quick):
    stores = []

    def opened(endpoint, held=KEYS, reload_credentials=None, **limits):
        config = StoreConfig(endpoint=endpoint, credentials=dict(held), reload_credentials=reload_credentials)
        stores.append(
            open_store(Uri("s3", "bucket", "run"), config, msgspec.structs.replace(quick, **limits))
        )
        return stores[-1].multipart

    yield opened
    for store in stores:
        await store.close()


@pytest.fixture
def server():
    server = Server()
    server.answers = {
        "begin": [lambda: web.Response(text=STARTED, headers=KNOWS)],
        "send": [lambda: web.Response(headers={"ETag": RECEIPT.tag})],
        "complete": [lambda: web.Response(text=DONE)],
        "abort": [lambda: web.Response(status=204)],
        "stat": [there()],
    }
    return server


@pytest.fixture
async def parts(server, answering, opened):
    return opened(await answering(server.answer))
