"""The pool against broken HTTP: it keeps no wrong byte, and leaves what it refuses to the fallback."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import cycle

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
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
from podferry.storage.http.concurrency import ConcurrencyController
from podferry.storage.http.connection import BUFFER_BYTES, FAIR_SHARE_BYTES, Connection
from podferry.storage.http.pool import JobSource
from podferry.storage.http.response_head import UnexpectedResponse, read_head
from podferry.storage.memory.store import Content, MemoryStore
from podferry.storage.request_builder import Origin
from tests.support.broken_http import TAG, UNSTATED, Asked, damaged, good, good_and_closed, truth
from tests.support.unsigned_requests import UnsignedRequestBuilder

PLAYED = [*UNSTATED, good, good, damaged]
RANGE = 1000
SMALL = PrefetchSettings(in_flight=4, range_bytes=RANGE, buffer_bytes=64 * BUFFER_BYTES, attempts=2)

FORMS = 48
"""More than any kind of answer has."""
TRIES = 20
"""Connections of one example: servers that answer with nothing would get requests forever."""


class Collecting:
    """A job that keeps its bytes, and checks their order."""

    head_only = False

    def __init__(self, number, size, start, length):
        self.number, self.start, self.length = number, start, length
        self.entry = Entry(f"{number}", size, TAG)
        self.truth = truth(number, start, length)
        self.got = bytearray()
        self.ends = []

    def receive_head(self, head):
        assert head.raw.startswith(b"HTTP/1.1 20")
        self.got.clear()

    def receive_body(self, data, offset):
        assert offset == len(self.got)
        self.got += data
        assert len(self.got) <= self.length


class Owner:
    """Hands out jobs and records how each ends."""

    tag_field = b"etag"

    def __init__(self, jobs):
        self.counters = TransferCounters()
        self.left = deque(jobs)
        self.current = None

    def opened(self, connection):
        pass

    def next_request(self, connection):
        assert self.current is None
        if not self.left:
            return None
        self.current = self.left.popleft()
        return self.current, b"request"

    def _end(self, how, job):
        assert job is self.current
        job.ends.append(how)
        self.current = None

    def received(self, count):
        self.counters.bytes += count

    def completed(self):
        self._end("done", self.current)

    def fall_back(self, job, reason):
        assert str(reason)
        self._end("fell back", job)

    def failed(self, job, error):
        raise AssertionError from error

    def closed(self, connection, job, *, unanswered):
        if job is None:
            return
        if unanswered:
            self.current = None
            self.left.appendleft(job)
        else:
            self._end("fell back", job)


class Wire(asyncio.Transport):
    """A transport that counts requests, and knows whether it is closed."""

    def __init__(self):
        super().__init__()
        self.requests = 0
        self.closed = self.paused = False

    def write(self, data):
        self.requests += 1

    def abort(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        assert not self.paused
        self.paused = True

    def resume_reading(self):
        self.paused = False


class Loop:
    """Calls back at once."""

    @staticmethod
    def call_soon(work):
        work()

    @staticmethod
    def time():
        return 0.0


def fed(connection, wire, data, cuts):
    """Feed bytes to a connection, in pieces of these lengths and then in large ones, while it is open."""
    pieces = iter(cuts)
    while data and not wire.closed:
        room = connection.get_buffer(-1)
        assert len(room), "the loop would read for ever"
        count = min(len(room), len(data), next(pieces, 1 << 16))
        room[:count] = data[:count]
        connection.buffer_updated(count)
        data = data[count:]


def served(jobs, answers, cuts):
    """Open one connection after another, with an answer to each request; the owner in the end."""
    owner, answers = Owner(jobs), deque(answers)
    for _ in range(TRIES):
        wire = Wire()
        connection = Connection(owner, Loop)
        connection.connection_made(wire)
        while owner.current is not None and not wire.closed and answers:
            kind, number = answers[0]
            answers.rotate(-1)
            job, requests_before = owner.current, wire.requests
            complete = job.start == 0 and job.length == job.entry.size
            answer = kind(Asked(job.truth, job.start, job.entry.size, complete), number)
            fed(connection, wire, answer.data, cuts)
            if answer.then == "hold" or (wire.requests == requests_before and answer.then == "keep"):
                connection.abort_stalled()
            elif answer.then != "keep":
                break
        wire.closed = True
        connection.connection_lost(None)
        if not owner.left:
            break
    return owner


SIZES = st.one_of(
    st.integers(1, 40),
    st.integers(900, 5000),
    st.sampled_from(
        [
            BUFFER_BYTES - 300,
            BUFFER_BYTES - 64,
            BUFFER_BYTES - 1,
            BUFFER_BYTES,
            BUFFER_BYTES + 1,
            3 * BUFFER_BYTES - 200,
        ]
    ),
)
CUTS = st.one_of(
    st.just([]),
    st.lists(st.integers(1, 40), max_size=60),
    st.just([1] * 400),
    st.just([BUFFER_BYTES, 1, 1, 1]),
)
ANSWERS = st.lists(
    st.tuples(st.sampled_from([*UNSTATED, *[good] * 10]), st.integers(0, 400)), min_size=1, max_size=6
)


@st.composite
def some_jobs(draw):
    found = []
    for number, size in enumerate(draw(st.lists(SIZES, min_size=1, max_size=5))):
        start = draw(st.sampled_from([0, 0, size // 2, size - 1]))
        length = size - start if draw(st.booleans()) else max(1, (size - start) // 2)
        found.append(Collecting(number, size, start, length))
    return found


@pytest.mark.timeout(180)
@settings(max_examples=150, deadline=None)
@given(some_jobs(), ANSWERS, CUTS)
def test_what_is_done_is_the_truth_and_each_job_ends_once(jobs, answers, cuts):
    owner = served(jobs, answers, cuts)
    for job in jobs:
        assert len(job.ends) <= 1
        if "done" in job.ends:
            assert job.got == job.truth
        else:
            assert job.ends == ["fell back"] or job in owner.left
    taken = sum(job.length for job in jobs if "done" in job.ends)
    assert owner.counters.bytes - owner.counters.discarded == taken


@pytest.mark.parametrize(
    "size", [BUFFER_BYTES - 64, BUFFER_BYTES, BUFFER_BYTES + 1, 3 * BUFFER_BYTES - 200, 5 * BUFFER_BYTES]
)
@pytest.mark.parametrize("cuts", [[], [1] * 300, [BUFFER_BYTES, 1, 1, 1], [BUFFER_BYTES - 1] * 9])
def test_what_is_larger_than_the_buffer_comes_in_order(size, cuts):
    jobs = [Collecting(number, size, start, size - start) for number, start in enumerate((0, 17, 0))]
    served(jobs, [(good, 0)], cuts)
    assert [job.ends for job in jobs] == [["done"]] * 3
    assert all(job.got == job.truth for job in jobs)


def test_a_connection_that_sends_bytes_without_a_request_is_closed():
    wire = Wire()
    connection = Connection(Owner([]), Loop)
    connection.connection_made(wire)
    fed(connection, wire, good(Asked(b"1", 0, 1, whole=True), 0).data, [])
    assert wire.closed


@pytest.mark.parametrize("kind", UNSTATED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("ranged", [False, True])
def test_each_defect_in_each_form_whole_and_byte_by_byte(kind, ranged):
    for number in range(FORMS):
        for cuts in ([], [1] * 500):
            jobs = [Collecting(n, 60, 20 * ranged, 30 if ranged else 60) for n in range(3)]
            served(jobs, [(kind, number), (UNSTATED[0], 0)], cuts)
            for job in jobs:
                assert job.ends in (["done"], ["fell back"]), (kind.__name__, number)
                assert job.ends == ["fell back"] or job.got == job.truth, (kind.__name__, number)


# The same answers from a server that plays them, to a prefetch with a sound fallback store.


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
        asked, bodiless = self._asked(await reader.readuntil(b"\r\n\r\n"))
        kind, number = next(self._answers)
        answer = kind(asked, number)
        await self._send(
            writer, answer.data[: answer.data.find(b"\r\n\r\n") + 4] if bodiless else answer.data
        )
        if answer.then == "hold":
            await self._held.wait()
        elif answer.then == "reset":
            writer.transport.abort()
        return answer.then == "keep"

    def _asked(self, request):
        name = request.split()[1][1:].decode()
        data = self._files[name]
        found = re.search(rb"bytes=(\d+)-(\d+)", request)
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(data))
        return Asked(data[start:end], start, len(data), not found), request.startswith(b"HEAD")

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


async def staged(folder, files, server, *, checksum_needs_head, context=None, bundle=""):
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
            builder = UnsignedRequestBuilder(port, checksum_needs_head=checksum_needs_head, ca_bundle=bundle)
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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A file with a key and the certificate of 127.0.0.1 that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    address = x509.IPAddress(ip_address("127.0.0.1"))
    made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    signed = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + signed.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    return path


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request, certificate):
    """The server's context, and the certificates that the client trusts."""
    if not request.param:
        return {}
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return {"context": context, "bundle": str(certificate)}


@pytest.mark.timeout(180)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3 * RANGE + 5), min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from(PLAYED), st.integers(0, 400)), min_size=1, max_size=6),
    st.lists(st.integers(1, 200), max_size=8),
    st.booleans(),
)
async def test_the_stage_is_the_truth_whatever_the_server_sends(
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


def paused():
    """A connection that has paused in a large body, its wire, what its loop does next, and bytes so far."""
    later, wire, loop = [], Wire(), Loop()
    loop.call_soon = later.append
    connection = Connection(Owner([Collecting(1, 2 * FAIR_SHARE_BYTES, 0, 2 * FAIR_SHARE_BYTES)]), loop)
    connection.connection_made(wire)
    data = good(Asked(truth(1, 0, 2 * FAIR_SHARE_BYTES), 0, 2 * FAIR_SHARE_BYTES, whole=True), 0).data
    given = 0
    while not wire.paused:
        room = connection.get_buffer(-1)
        room[:] = data[given : given + len(room)]
        given += len(room)
        connection.buffer_updated(len(room))
    return connection, wire, later, given


def test_a_large_body_yields_to_other_connections():
    """Otherwise a loop comes round ten times a second, and worker processes wait for their jobs."""
    _, wire, later, given = paused()
    assert FAIR_SHARE_BYTES <= given <= FAIR_SHARE_BYTES + 2 * BUFFER_BYTES
    later.pop()()
    assert not wire.paused


def test_a_connection_that_has_closed_is_not_read_on():
    connection, wire, later, _ = paused()
    connection.abort()
    later.pop()()
    assert wire.paused


@pytest.mark.timeout(20)
def test_a_head_of_blanks_is_read_at_once():
    """A pattern that backtracks would take hours."""
    asked = Asked(truth(1, 0, 9), 0, 9, whole=True)
    entry = Entry("1", 9, TAG)
    plain = good(asked, 0).data
    assert read_head(bytearray(plain), len(plain), entry, 0, 9) is not None
    blanks = b" " * 5000
    head = b"HTTP/1.1 200 OK\r\nContent-Length:%s9\r\nETag:%s%s\r\n" % (blanks, blanks, TAG.encode())
    for end in (b"Other: 1", b"Content-Range:" + blanks):
        data = bytearray(head + end + b"\r\n\r\n" + asked.data)
        with suppress(UnexpectedResponse):
            read_head(data, len(data), entry, 0, 9)


class Distant(JobSource):
    """An endless supply of large ranges."""

    origin = Origin("127.0.0.1", 1, tls=False)

    async def next_batch(self):
        return [Collecting(number, 8 << 20, 0, 8 << 20) for number in range(4)]

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
    await asyncio.wait_for(enough.wait(), 20)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
