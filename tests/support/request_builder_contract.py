"""What a store with a `request_builder` must do: imported by each test module with a `store` fixture.

A client of a few lines sends the requests over one connection, as the connection pool does.
"""

import asyncio
import random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from podferry.storage.contract_suite.inputs import NAMES, ODD_NAMES
from podferry.storage.contract_suite.naming import refused_characters  # noqa: F401 - a fixture
from podferry.storage.http.response_head import UnexpectedResponse, read_head


class Client:
    """Speaks plain HTTP/1.1 over one connection."""

    def __init__(self, builder):
        self.builder = builder
        self.streams = None

    async def get(self, entry, start=0, length=None, method="GET"):
        """Status of a response, whether the connection pool accepts it, header block and body."""
        await self.builder.prepare([entry])
        origin = self.builder.origin
        if self.streams is None:
            self.streams = await asyncio.open_connection(origin.host, origin.port, ssl=origin.ssl_context())
        reader, writer = self.streams
        length = entry.size - start if length is None else length
        writer.write(self.builder.build(entry, start, length, method))
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split()[1])
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if line)
        taken = status in (200, 206)
        size = int(fields[b"content-length"]) if taken and method == "GET" else 0
        body = await reader.readexactly(size)
        if not taken or fields.get(b"connection", b"").strip() == b"close":
            await self.close()  # a refusal may come in a shape of its own
        return status, self.plain(head, entry, start, length), head, body

    def plain(self, head, entry, start, length):
        origin = self.builder.origin
        rules = origin.tag_field.encode(), origin.ranges_in_address
        try:
            return read_head(bytearray(head), len(head), entry, start, length, *rules) is not None
        except UnexpectedResponse:
            return False

    async def close(self):
        if self.streams is not None:
            self.streams[1].close()
            await self.streams[1].wait_closed()
            self.streams = None


@pytest.fixture
async def client(store):
    client = Client(store.request_builder)
    yield client
    await client.close()


@pytest.fixture
def put(store):
    """Writes an object that the store will read; for read-only stores through another store."""
    return store.write


@pytest.fixture
def remove(store):
    return store.delete


@pytest.fixture
def listed(store):
    """The entry of an object, as the connection pool gets it."""

    async def listed(name):
        (entry,) = [entry async for entry in store.entries() if entry.name == name]
        return entry

    return listed


async def test_ranges_equal_what_the_store_reads(store, put, listed, client):
    data = random.Random(1).randbytes(300_000)  # noqa: S311  # no secret
    await put("a/b", data)
    entry = await listed("a/b")
    for start, length in ((0, 300_000), (0, 1), (299_999, 1), (7, 131_072), (0, 299_999), (1, 299_999)):
        status, plain, head, body = await client.get(entry, start, length)
        in_address = client.builder.origin.ranges_in_address
        expected = 200 if length == len(data) or in_address else 206
        assert (status, plain) == (expected, True), head
        assert body == bytes(await store.read("a/b", start, length, entry.tag))
        if not in_address:  # WebHDFS has no HEAD, and needs none
            status, _, _, _ = await client.get(entry, method="HEAD")
            assert status == 200


async def test_empty_objects_are_requested_without_a_range(put, listed, client):
    await put("a/empty", b"")
    entry = await listed("a/empty")
    status, plain, head, body = await client.get(entry)
    assert (status, plain, body) == (200, True, b""), head


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_are_requested(refused_characters, put, remove, listed, client, name):  # noqa: F811
    await asked_for(refused_characters, put, remove, listed, client, name)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
async def test_any_name_is_requested(refused_characters, put, remove, listed, client, name):  # noqa: F811
    await asked_for(refused_characters, put, remove, listed, client, name)


async def asked_for(refused, put, remove, listed, client, name):
    if any(character in name for character in refused):
        return
    await put("dir/" + name, name.encode())
    entry = await listed("dir/" + name)
    status, plain, head, body = await client.get(entry)
    assert (status, plain, body) == (200, True, name.encode()), head
    await remove(["dir/" + name])


async def test_another_version_is_refused_or_recognized(put, listed, client):
    await put("a", b"old")
    entry = await listed("a")
    await put("a", b"new")
    for start, length in ((0, 3), (1, 2)):
        status, plain, head, _ = await client.get(entry, start, length)
        assert status == 412 or not plain, head


async def test_a_missing_object_is_404(put, remove, listed, client):
    await put("a", b"old")
    entry = await listed("a")
    await remove(["a"])
    status, plain, _, _ = await client.get(entry)
    assert (status in (404, 412), plain) == (True, False)
    status, plain, _, _ = await client.get(msgspec.structs.replace(entry, name="b", tag=""))
    assert (status, plain) == (404, False)
