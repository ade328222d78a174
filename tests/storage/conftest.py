import importlib
import itertools
import os

import pytest
from aiohttp import web

from podferry.contract.uri import parse_uri
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.store_calls import KEYS

pytest.register_assert_rewrite(
    "tests.support.store_contract",
    "tests.support.multipart_contract",
    "tests.support.request_builder_contract",
)

QUICK = Limits(
    connect_seconds=5,
    stall_seconds=1,
    request_seconds=20,
    retries=1,
    retry_seconds=1,
    metadata_seconds=1,
    part_bytes=5 << 20,
)
COUNTER = itertools.count()


@pytest.fixture(scope="session")
def moto():
    """An S3 server in this process, as its endpoint; it does not check signatures."""
    # Imported where it is needed: most tests here do without it.
    server = importlib.import_module("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def s3(moto):
    """A plain client of the server, for what stores cannot do; the bucket is `bucket`."""
    client = importlib.import_module("boto3").client(
        "s3",
        endpoint_url=moto,
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    yield client
    client.close()


@pytest.fixture
async def answering():
    """Starts servers with a given handler; returns their endpoints."""
    runners = []

    async def start(handler):
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


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
    return QUICK
