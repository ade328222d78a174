"""One connection against broken HTTP: each job ends once, and with the right bytes only."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.manifest import Entry
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.http.buffer_pool import BUFFER_BYTES, BufferPool
from podferry.storage.http.connection import FAIR_SHARE_BYTES, Connection
from tests.support.broken_http import UNSTATED, good_and_closed
from tests.support.http_answers import TAG, Request, good, truth

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

    response_rules = b"etag", False
    refuses_pages = False

    def __init__(self, jobs):
        self.counters, self.buffers = TransferCounters(), BufferPool()
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
            answer = kind(Request(job.truth, job.start, job.entry.size, complete), number)
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


@settings(max_examples=150, deadline=None)
@given(some_jobs(), ANSWERS, CUTS)
def test_completed_jobs_have_the_right_bytes_and_each_job_ends_once(jobs, answers, cuts):
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
def test_a_body_larger_than_the_buffer_arrives_in_order(size, cuts):
    jobs = [Collecting(number, size, start, size - start) for number, start in enumerate((0, 17, 0))]
    served(jobs, [(good, 0)], cuts)
    assert [job.ends for job in jobs] == [["done"]] * 3
    assert all(job.got == job.truth for job in jobs)


def test_a_connection_that_sends_bytes_without_a_request_is_closed():
    wire = Wire()
    connection = Connection(Owner([]), Loop)
    connection.connection_made(wire)
    fed(connection, wire, good(Request(b"1", 0, 1, complete=True), 0).data, [])
    assert wire.closed


@pytest.mark.parametrize("kind", UNSTATED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("ranged", [False, True])
def test_each_defect_in_each_form_at_once_and_byte_by_byte(kind, ranged):
    for number in range(FORMS):
        for cuts in ([], [1] * 500):
            jobs = [Collecting(n, 60, 20 * ranged, 30 if ranged else 60) for n in range(3)]
            served(jobs, [(kind, number), (UNSTATED[0], 0)], cuts)
            for job in jobs:
                assert job.ends in (["done"], ["fell back"]), (kind.__name__, number)
                assert job.ends == ["fell back"] or job.got == job.truth, (kind.__name__, number)


def paused():
    """A connection that has paused in a large body, its wire, what its loop does next, and bytes so far."""
    later, wire, loop = [], Wire(), Loop()
    loop.call_soon = later.append
    connection = Connection(Owner([Collecting(1, 2 * FAIR_SHARE_BYTES, 0, 2 * FAIR_SHARE_BYTES)]), loop)
    connection.connection_made(wire)
    data = good(Request(truth(1, 0, 2 * FAIR_SHARE_BYTES), 0, 2 * FAIR_SHARE_BYTES, complete=True), 0).data
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


def test_a_closed_connection_does_not_resume_reading():
    connection, wire, later, _ = paused()
    connection.abort()
    later.pop()()
    assert wire.paused


def test_connections_take_over_the_buffers_of_closed_ones():
    """A server that closes after each response would otherwise cost a new buffer for each file."""
    jobs = [Collecting(number, 5000, 0, 5000) for number in range(TRIES)]
    owner = served(jobs, [(good_and_closed, 0)], [])
    assert all(job.got == job.truth for job in jobs)
    used = owner.buffers.acquire()
    assert b"Content-Length: 5000" in used[:500]
    assert owner.buffers.acquire()[:500] == bytes(500), "the only one that was used"


@pytest.mark.parametrize(("refuses", "end"), [(True, "fell back"), (False, "done")])
def test_a_page_in_the_place_of_a_file_is_left_to_the_stores_own_client(refuses, end):
    page = b"<html>abc\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\nContent-Type: text/html\r\nETag: {TAG}\r\n\r\n"
    job = Collecting(1, len(page), 0, len(page))
    owner = Owner([job])
    owner.refuses_pages = refuses
    connection = Connection(owner, Loop)
    wire = Wire()
    connection.connection_made(wire)
    fed(connection, wire, head.encode() + page, [])
    assert job.ends == [end]
    assert bytes(job.got) == (b"" if refuses else page)
