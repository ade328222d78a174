"""Plain HTTP that was sent to a port with TLS."""

import asyncio
import contextlib

import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.errors.plain_http import requires_tls
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.errors.vendor_fields import VendorFields
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS, listed

AZURE_KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "YQ=="}


async def answer(request):
    return web.Response()


@pytest.mark.parametrize("engine", ["obstore", "web"])
async def test_a_port_that_requires_tls_is_named(answering, private_ca, quick, engine):
    port = (await answering(answer, private_ca.server_context("x.test"))).rpartition(":")[2]
    endpoint = f"http://127.0.0.1:{port}"
    uri = parse_uri("s3://bucket/x" if engine == "obstore" else f"{endpoint}/x")
    config = StoreConfig(endpoint=endpoint if engine == "obstore" else None, credentials=KEYS)
    store = open_store(uri, config, quick)
    with pytest.raises(InvalidSpec) as caught:
        await listed(store)
    assert "requires TLS" in str(caught.value)
    assert "Write https:// instead of http://" in str(caught.value)
    await store.close()


async def test_an_outage_stays_one(quick):
    store = open_store(parse_uri("http://127.0.0.1:1/x"), StoreConfig(), quick)
    with pytest.raises(Unavailable):
        await listed(store)
    await store.close()


@pytest.mark.parametrize(
    ("endpoint", "proxy", "fields", "suspect"),
    [
        ("http://127.0.0.1:PORT", "", VendorFields(reason="request not sent"), True),
        ("http://127.0.0.1:PORT", "", VendorFields(status=400), True),
        ("http://127.0.0.1:PORT", "", VendorFields(status=400, code="InvalidRequest"), False),
        ("http://127.0.0.1:PORT", "", VendorFields(status=503), False),
        ("http://127.0.0.1:PORT", "", VendorFields(reason="no response in time"), False),
        ("http://127.0.0.1:PORT", "", VendorFields(reason="connection refused"), False),
        ("https://127.0.0.1:PORT", "", VendorFields(), False),
        ("http://127.0.0.1:PORT", "http://127.0.0.1:1", VendorFields(), False),
        ("", "", VendorFields(), False),
    ],
)
async def test_a_handshake_is_tried_only_where_its_result_would_help(
    answering, private_ca, endpoint, proxy, fields, suspect
):
    port = (await answering(answer, private_ca.server_context("x.test"))).rpartition(":")[2]
    location = StoreLocation(parse_uri("s3://b"), endpoint.replace("PORT", port), proxy=proxy)
    assert await requires_tls(location, fields) is suspect


@pytest.mark.parametrize("uri", ["http://SERVER/x", "webdav://SERVER/x", "s3://b/x", "az://b/x"])
@pytest.mark.parametrize("banner", ["SSH-2.0-OpenSSH_9.2p1", "220 (vsFTPd 3.0.3)"])
@pytest.mark.parametrize("waits", [False, True])
async def test_another_service_is_named(quick, uri, banner, waits):
    tasks = []

    async def greet(reader, writer):
        tasks.append(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if waits:
                await reader.readuntil(b"\n")
            writer.write(f"{banner}\r\n".encode())
            await reader.read()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        endpoint = None if "SERVER" in uri else f"http://{address}"
        config = StoreConfig(endpoint=endpoint, credentials={**KEYS, **AZURE_KEYS})
        store = open_store(parse_uri(uri.replace("SERVER", address)), config, quick)
        with pytest.raises(InvalidSpec, match="does not respond as a web server") as caught:
            await listed(store)
        assert (f"'{banner}'" if uri[:2] != "az" else "no response of HTTP") in str(caught.value)
        await store.close()
        await asyncio.gather(*tasks)
