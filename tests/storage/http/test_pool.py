"""The pool against broken HTTP: it keeps no wrong byte, and leaves what it refuses to the fallback."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http import dialer, pool
from podferry.storage.http.buffer_pool import BUFFER_BYTES
from podferry.storage.http.concurrency import ConcurrencyController
from podferry.storage.http.pool import JobSource
from podferry.storage.memory.store import Content, MemoryStore
from podferry.storage.network.proxies import Proxy
from podferry.storage.request_builder import Origin
from tests.support.broken_http import UNSTATED, damaged, good_and_closed
from tests.support.http_answers import TAG, Request, good, truth
from tests.support.patience import PATIENCE
from tests.support.unsigned_requests import UnsignedRequestBuilder

PLAYED = [*UNSTATED, good, good, damaged]
RANGE = 1000
SMALL = PrefetchSettings(in_flight=4, range_bytes=RANGE, buffer_bytes=64 * BUFFER_BYTES, attempts=2)


class Server:
    """Plays answers, one a request, over and over; each in pieces."""

    def __init__(self, files, answers, cuts):
        self._files, self._answers, self._cuts = files, cycle(answers), cuts
        self._held = asyncio.Event()

    async def serve(self, reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader, writer):
        request, head_only = self._parse(await reader.readuntil(b"\r\n\r\n"))
        kind, number = next(self._answers)
        answer = kind(request, number)
        await self._send(
            writer, answer.data[: answer.data.find(b"\r\n\r\n") + 4] if head_only else answer.data
        )
        if answer.then == "hold":
            await self._held.wait()
        elif answer.then == "reset":
            writer.transport.abort()
        return answer.then == "keep"

    def _parse(self, head):
        data = self._files[head.split()[1][1:].decode()]
        found = re.search(rb"bytes=(\d+)-(\d+)", head)
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(data))
        return Request(data[start:end], start, len(data), not found), head.startswith(b"HEAD")

    async def _send(self, writer, data):
        pieces = iter(self._cuts)
        while data:
            count = next(pieces, len(data))
            writer.write(data[:count])
            await writer.drain()
            await asyncio.sleep(0)
            data = data[count:]

    @asynccontextmanager
    async def listening(self, context=None):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=context)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self._held.set()
            server.close()
            await server.wait_closed()


async def staged(folder, files, server, *, checksum_needs_head, context=None, ca="", proxy=None):
    """What a prefetch writes to a directory, and its counters."""
    store = MemoryStore(parse_uri("memory://fuzz"), Content())
    store.content.objects = dict(files)
    entries = [Entry(name, len(data), TAG) for name, data in files.items()]
    manifest = freeze("memory://fuzz", entries)
    (folder / "stage").mkdir()
    stage, counters = StagingDir(folder / "stage", folder / "ownership"), TransferCounters()
    plan = plan_fetch(manifest, stage.claim(manifest), SMALL)
    try:
        async with server.listening(context) as port:
            builder = UnsignedRequestBuilder(port, checksum_needs_head=checksum_needs_head, ca=ca)
            if proxy is not None:
                proxy.ports[f"store:{port}"] = port
                behind = msgspec.structs.replace(builder.origin, host="store", proxy=Proxy(proxy.url))
                builder.origin = behind
            source = FetchSource(FallbackStore(store, builder))
            await Fetcher(plan, source, stage, SMALL, counters=counters).run()
    finally:
        stage.close()
    return {path.name: path.read_bytes() for path in stage.root.rglob("*") if path.is_file()}, counters


class FallbackStore:
    """The store's own client: its objects have other tags than the server sends."""

    def __init__(self, store, request_builder):
        self.store, self.request_builder = store, request_builder

    async def read(self, name, start, length, tag, size):
        return await self.store.read(name, start, length)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(pool, "STALL_SECONDS", 0.1)
    monkeypatch.setattr(dialer, "REDIAL_SECONDS", 0.01)


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request, private_ca):
    """The server's context, and the certificates that the client trusts."""
    return {"context": private_ca.server_context("127.0.0.1"), "ca": private_ca.pem} if request.param else {}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3 * RANGE + 5), min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from(PLAYED), st.integers(0, 400)), min_size=1, max_size=6),
    st.lists(st.integers(1, 200), max_size=8),
    st.booleans(),
)
async def test_the_stage_is_right_whatever_the_server_sends(
    impatient, tmp_path_factory, tls, sizes, answers, cuts, asks
):
    files = {f"f{number}": truth(number, 0, size) for number, size in enumerate(sizes)}
    server = Server(files, answers, cuts)
    found, counters = await staged(
        tmp_path_factory.mktemp("fuzz"), files, server, checksum_needs_head=asks, **tls
    )
    assert found == files
    assert counters.files == len(files)
    assert counters.bytes - counters.discarded == sum(sizes)


async def test_a_sound_server_needs_no_fallback(tmp_path, tls):
    files = {f"f{number}": truth(number, 0, 600 * number) for number in range(12)}
    server = Server(files, [(good, 0), (good, 1), (good_and_closed, 0), (good_and_closed, 1)], [])
    found, counters = await staged(tmp_path, files, server, checksum_needs_head=False, **tls)
    assert found == files
    assert (counters.handed_over, counters.discarded) == (0, 0)


async def test_every_connection_goes_through_the_proxy(tmp_path, private_ca, proxy):
    files = {f"f{number}": truth(number, 0, 600 * number) for number in range(12)}
    server, context = Server(files, [(good, 0), (good, 1)], []), private_ca.server_context("store")
    options = {"context": context, "ca": private_ca.pem, "proxy": proxy}
    found, counters = await staged(tmp_path, files, server, checksum_needs_head=False, **options)
    assert found == files
    assert (counters.handed_over, counters.discarded) == (0, 0)
    assert proxy.requests
    assert set(proxy.requests) == {f"CONNECT {next(iter(proxy.ports))}"}


async def test_others_that_change_the_counters_do_not_affect_the_concurrency(tmp_path, monkeypatch):
    """A worker resets its counters with each report, and the agent's include those of its workers."""
    samples, update = [], ConcurrencyController.update
    monkeypatch.setattr(pool, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(
        ConcurrencyController, "update", lambda self, sample: samples.append(sample) or update(self, sample)
    )
    monkeypatch.setattr(TransferCounters, "first_byte", lambda counters, seconds: counters.take())
    files = {f"f{number}": truth(number, 0, 600) for number in range(200)}
    await staged(tmp_path, files, Server(files, [(good, 0)], []), checksum_needs_head=False)
    assert all(one.jobs >= 0 and one.bytes >= 0 for one in samples)
    assert sum(one.jobs for one in samples) <= 200
    assert samples


class Distant(JobSource):
    """An endless supply of large ranges."""

    origin = Origin("127.0.0.1", 1, tls=False)

    async def next_batch(self):
        return [SimpleNamespace(head_only=False, length=8 << 20) for _ in range(4)]

    def fall_back(self, job, reason):
        pass


async def test_all_connections_are_opened_at_once_however_long_each_takes(monkeypatch):
    dialed, enough = [], asyncio.Event()

    async def dial(self):
        dialed.append(1)
        if len(dialed) == 64:
            enough.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(dialer.Dialer, "dial", dial)
    monkeypatch.setattr(pool, "ConcurrencyController", lambda limit: ConcurrencyController(limit, initial=64))
    run = asyncio.create_task(pool.ConnectionPool(Distant(), 64, TransferCounters()).run())
    await asyncio.wait_for(enough.wait(), PATIENCE)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
