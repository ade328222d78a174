import itertools
import os
from contextlib import AsyncExitStack

import msgspec
import pytest
import stamina
from aiohttp import web

from podferry.contract.uri import parse_uri
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.connect_proxy import connect_proxy, tls_relay
from tests.support.moto_server import moto_server
from tests.support.patience import PATIENCE
from tests.support.private_ca import PrivateCa
from tests.support.store_calls import KEYS

QUICK = Limits(
    connect_seconds=PATIENCE,
    stall_seconds=PATIENCE,
    request_seconds=PATIENCE,
    retries=1,
    retry_seconds=1,
    metadata_seconds=1,
    part_bytes=5 << 20,
)
COUNTER = itertools.count()


@pytest.fixture(scope="session")
def moto_and_client():
    with moto_server("bucket") as server:
        yield server


@pytest.fixture(scope="session")
def moto(moto_and_client):
    """An S3 server in this process, as its endpoint; it does not check signatures."""
    return moto_and_client[0]


@pytest.fixture(scope="session")
def s3(moto_and_client):
    """A plain client of the server, for what stores cannot do; the bucket is `bucket`."""
    return moto_and_client[1]


@pytest.fixture
async def answering():
    """Starts servers with a given handler, plain or with a TLS context; returns their endpoints."""
    async with AsyncExitStack() as stack:

        async def start(handler, context=None):
            app = web.Application(client_max_size=1 << 30)
            app.router.add_route("*", "/{path:.*}", handler)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            if context is None:
                return f"http://127.0.0.1:{port}"
            return f"https://127.0.0.1:{await stack.enter_async_context(tls_relay(context, port))}"

        yield start


@pytest.fixture(scope="session")
def private_ca():
    return PrivateCa()


@pytest.fixture
async def proxy():
    async with connect_proxy() as running:
        yield running


@pytest.fixture
async def moto_over_tls(moto, s3, private_ca):
    """Port of the S3 server over TLS, with a certificate for `store` and 127.0.0.1."""
    context = private_ca.server_context("store", "127.0.0.1")
    async with tls_relay(context, int(moto.rpartition(":")[2])) as port:
        yield port


@pytest.fixture
def config(moto, s3):
    return StoreConfig(endpoint=moto, credentials=KEYS)


@pytest.fixture
def fresh():
    """An unused prefix, with characters that need care."""
    return f"run {os.getpid()}/n+{next(COUNTER)} %20"


@pytest.fixture
def fresh_s3(fresh):
    return parse_uri("s3://bucket") / fresh


@pytest.fixture
def quick():
    """Few retries; a server that responds may take its time on a busy machine."""
    return QUICK


@pytest.fixture
def impatient():
    """For servers that never respond."""
    return msgspec.structs.replace(QUICK, stall_seconds=1)


@pytest.fixture
def quick_retries():
    """Without pauses."""
    with stamina.set_testing(True, attempts=9, cap=True):
        yield
