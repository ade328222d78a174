import itertools

import pytest
from aiohttp import web

from podferry.storage.store import StoreConfig
from tests.support.moto_server import moto_server
from tests.support.store_calls import KEYS
from tests.support.sync_site import SyncSite

COUNTER = itertools.count()


@pytest.fixture
def site(quick_retries):
    found = SyncSite(f"sync-{next(COUNTER)}")
    yield found
    found.close()


@pytest.fixture(scope="session")
def moto():
    """How to reach moto's S3 server, a stand-in; it has the bucket `bucket`."""
    with moto_server("bucket") as (endpoint, _):
        yield StoreConfig(endpoint=endpoint, credentials=KEYS)


@pytest.fixture
async def web_tree(tree):
    """The files of `tree` on a web server with index pages."""
    app = web.Application()
    app.router.add_static("/", tree, show_index=True)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
