"""A file that is not what was listed, ends early, or changes while it is read."""

import struct
from types import SimpleNamespace

import pytest

from podferry.contract.errors import Changed, Corrupt
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.smb.messages import Command, Response
from podferry.storage.smb.nt_status import (
    ACCESS_DENIED,
    DELETE_PENDING,
    END_OF_FILE,
    SHARING_VIOLATION,
    StatusError,
)
from podferry.storage.smb.reads import PAUSES, Reader, when_free

LOCATION = StoreLocation(parse_uri("smb://nas/share/d"))
DATA = bytes(range(100))


class File:
    """A share with one file: what it says of it, and what it sends.

    Attributes:
        size, written: When it is opened.
        closed: Size and time when it is closed.
        data: What reads get.
        most: Bytes of one response.
    """

    def __init__(self, size=100, written=5, closed=(100, 5), data=DATA, most=1 << 20):
        self.size, self.written, self.closed, self.data, self.most = size, written, closed, data, most
        self.connection, self.negotiated = self, SimpleNamespace(max_read=most)
        self.max_payload, self.handles = most, 0

    async def call(self, *requests):
        return [Response(*self.answer(request)) for request in requests]

    def answer(self, request):
        if request.command is Command.CREATE:
            self.handles += 1
            times = (0, 0, self.written, 0, 0, self.size)
            return 0, self.body(struct.pack("<HBBIQQQQQQII16sII", 89, 0, 0, 1, *times, 0, 0, b"h", 0, 0))
        if request.command is Command.CLOSE:
            self.handles -= 1
            size, written = self.closed
            return 0, self.body(struct.pack("<HHIQQQQQQI", 60, 1, 0, 0, 0, written, 0, 0, size, 0))
        length, start = struct.unpack_from("<IQ", request.body, 4)
        found = self.data[start : start + min(length, self.most)]
        if not found:
            return END_OF_FILE, self.body(b"")
        return 0, self.body(struct.pack("<HBBIII", 17, 80, 0, len(found), 0, 0) + found)

    def reuse(self, response):
        """Overwrite what nothing reads any more."""
        response.data[:] = bytes(len(response.data))

    def body(self, data):
        return memoryview(bytearray(bytes(64) + data))


async def read(share, start=0, length=None, tag="", size=None):
    return bytes(await Reader(LOCATION, "a", "d\\a", tag, size).read(share, start, length))


@pytest.mark.parametrize("most", [1 << 20, 30, 7])
@pytest.mark.parametrize(("start", "length"), [(0, None), (0, 100), (10, 50), (99, 1), (100, None), (5, 0)])
async def test_all_bytes_however_many_requests_it_takes(most, start, length):
    share = File(most=most)
    expected = DATA[start : None if length is None else start + length]
    assert await read(share, start, length) == expected
    assert await read(share, start, length, "0-5-64", 100) == expected
    assert share.handles == 0


@pytest.mark.parametrize("most", [1 << 20, 30])
@pytest.mark.parametrize("share", [{"size": 99}, {"size": 101}, {"written": 6}])
async def test_what_was_not_listed_has_changed(share, most):
    file = File(**share, most=most)
    with pytest.raises(Changed):
        await read(file, 0, 50, "0-5-64", 100)
    assert file.handles == 0


@pytest.mark.parametrize("most", [1 << 20, 30])
async def test_a_file_that_ends_before_its_size_is_corrupt(most):
    file = File(data=DATA[:40], most=most)
    with pytest.raises(Corrupt, match="40 bytes; requested 100 from 0"):
        await read(file, 0, 100)
    assert file.handles == 0


@pytest.mark.parametrize("most", [1 << 20, 30])
@pytest.mark.parametrize("closed", [(100, 6), (120, 5)])
async def test_a_file_that_changes_while_it_is_read(closed, most):
    with pytest.raises(Changed):
        await read(File(closed=closed, most=most), 0, 100)


async def test_a_server_that_says_nothing_when_it_closes():
    assert await read(File(closed=(0, 0)), 0, 100) == DATA


async def test_a_refusal_is_raised():
    class Refused(File):
        def answer(self, request):
            return 0xC0000022, self.body(b"")

    with pytest.raises(StatusError, match="ACCESS_DENIED"):
        await read(Refused(), 0, 100)


async def test_a_file_that_a_writer_has_open_is_read_after_it() -> None:
    def work_of(*statuses: int):
        answers = list(statuses)

        async def work() -> str:
            if answers:
                raise StatusError(answers.pop(0))
            return "read"

        return work

    assert await when_free(work_of(SHARING_VIOLATION, DELETE_PENDING)) == "read"
    for status, times in ((SHARING_VIOLATION, 1 + len(PAUSES)), (ACCESS_DENIED, 1)):
        with pytest.raises(StatusError):
            await when_free(work_of(*[status] * times))
