"""Requests to Azure: signatures are compared with obstore's."""

from email.utils import parsedate_to_datetime

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import CredentialsMissing, FerryError
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import azure_access
from podferry.storage.azure.get_requests import get_builder_for
from podferry.storage.factory import open_store
from podferry.storage.request_builder import Origin
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS

ACCOUNT = {"AZURE_STORAGE_ACCOUNT_NAME": "acc"}
KEY = {**ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0LW9mLXRlc3Rz"}
LETTERS = st.characters(categories=("L", "N")) | st.sampled_from(" -_~")
NAMES = st.text(LETTERS, min_size=1, max_size=20)
"""obstore does not encode some characters that we encode: the same blob, another signature."""


@pytest.fixture
async def spy():
    """A server that records requests: its address and a list."""
    seen = []

    async def answer(request):
        seen.append(request)
        return web.Response(status=404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/acc", seen
    await runner.cleanup()


def lines_of(head):
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    return first, {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


def builder_for(endpoint="http://127.0.0.1:1", key="run", **credentials):
    config = StoreConfig(endpoint=endpoint, credentials=credentials)
    return get_builder_for(azure_access(Uri("az", "cont", key), config), LIMITS)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, tag=st.sampled_from(["", '"0x8DE"']), ranged=st.booleans())
async def test_signatures_are_those_of_obstore(spy, monkeypatch, quick, name, tag, ranged):
    endpoint, seen = spy
    store = open_store(Uri("az", "cont", "run"), StoreConfig(endpoint=endpoint, credentials=KEY), quick)
    start, length = (3, 4) if ranged else (0, 10)
    with pytest.raises(FerryError):
        await store.read(name, start, length if ranged else None, tag)
    asked = next(request for request in seen if request.method == "GET" and "restype" not in request.query)
    seen.clear()
    now = parsedate_to_datetime(asked.headers["Date"]).timestamp()
    monkeypatch.setattr("podferry.storage.azure.get_requests.time.time", lambda: now)
    first, sent = lines_of(store.request_builder.build(Entry(name, 10, tag), start, length))
    assert first == f"GET {asked.raw_path} HTTP/1.1"
    for field in ("Authorization", "Date", "Range", "If-Match", "x-ms-version"):
        assert sent.get(field.lower()) == asked.headers.get(field)
    await store.close()


async def test_other_credentials_need_no_signature():
    entry = Entry("a b", 10, '"t"')
    builder = builder_for(
        "https://acc.blob.core.windows.net", **ACCOUNT, AZURE_STORAGE_SAS_TOKEN="?sv=1&sig=a%2Bb%3D"
    )
    await builder.prepare([entry])
    first, sent = lines_of(builder.build(entry, 0, 10))
    assert first == "GET /cont/run/a%20b?sv=1&sig=a%2Bb%3D HTTP/1.1"
    assert builder.origin == Origin("acc.blob.core.windows.net", 443, tls=True)
    assert sent["x-ms-version"]
    assert sent["if-match"] == '"t"'
    assert lines_of(builder.build(entry, 0, 10, "HEAD"))[0].startswith("HEAD /cont")
    builder = builder_for(**ACCOUNT, AZURE_STORAGE_TOKEN="token")
    await builder.prepare([entry])
    _, sent = lines_of(builder.build(entry, 0, 9))
    assert (sent["authorization"], sent["range"]) == ("Bearer token", "bytes=0-8")
    first, sent = lines_of(builder_for(key="", **ACCOUNT, AZURE_SKIP_SIGNATURE="true").build(entry, 0, 10))
    assert (first, "authorization" in sent) == ("GET /cont/a%20b HTTP/1.1", False)


def test_a_signature_with_line_breaks_is_not_sent():
    assert builder_for(**ACCOUNT, AZURE_STORAGE_SAS_TOKEN="sv=1 HTTP/1.1\r\nEvil: 1") is None


async def test_a_token_with_line_breaks_is_not_sent():
    builder = builder_for(**ACCOUNT, AZURE_STORAGE_TOKEN="a\r\nEvil: 1")
    with pytest.raises(CredentialsMissing):
        await builder.prepare([])
