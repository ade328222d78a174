"""SFTP servers that lie, hang and never end: right bytes, or an error that names it, in bounded time.

The stand-in speaks SSH by asyncssh, and SFTP as a test says.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import import_module  # what only these tests need is not installed for the others
from itertools import count

import pytest

from podferry.contract.errors import Corrupt, FerryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE
from tests.support.scripted_sftp import (
    DATA,
    DIRECTORY,
    Answers,
    attributes,
    names_of,
    response,
    scripted_sftp,
    status,
    text,
)

HASTY = Limits(connect_seconds=2, stall_seconds=0.5, request_seconds=1, retries=1, retry_seconds=0.5)
"""For servers that never respond."""
PATIENT = Limits(
    connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=2, retry_seconds=9
)
KEYS = {"SFTP_USERNAME": "user", "SFTP_PASSWORD": "password", "SFTP_INSECURE_IGNORE_HOST_KEY": "true"}
CONFIG = StoreConfig(credentials=KEYS)
OPEN, CLOSE, READ, FSTAT, OPENDIR, READDIR, REALPATH, STAT = 3, 4, 5, 8, 11, 12, 16, 17
HANDLE, DATA_TYPE, NAME, ATTRS = 102, 103, 104, 105


@asynccontextmanager
async def opened(answers: Answers, limits: Limits = PATIENT) -> AsyncIterator[Store]:
    async with scripted_sftp(answers) as address:
        store = open_store(parse_uri(f"sftp://{address}/d"), CONFIG, limits)
        try:
            async with asyncio.timeout(PATIENCE):
                yield store
        finally:
            await store.close()


async def names(store: Store) -> list[str]:
    return [entry.name async for entry in store.entries()]


async def read(store: Store) -> bytes:
    """The file as it is fetched: after it was listed."""
    (entry,) = [entry async for entry in store.entries()]
    return bytes(await store.read(entry.name, 0, entry.size, entry.tag, entry.size))


def always(kind: int, body: bytes) -> Callable[[int, bytes], list[bytes]]:
    return lambda number, _: [response(kind, number, body)]


def silent(number: int, _: bytes) -> list[bytes]:
    return []


async def test_a_sound_server_is_read() -> None:
    async with opened({}) as store:
        assert await read(store) == DATA


# Directories.


@pytest.mark.parametrize("kind", [OPENDIR, READDIR, OPEN, READ, FSTAT])
async def test_a_server_that_hangs_is_an_outage(kind: int) -> None:
    async with opened({kind: silent}, HASTY) as store:
        with pytest.raises(Unavailable, match="does not respond"):
            await read(store)


async def test_a_listing_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("podferry.storage.sftp.directories"), "MAX_LISTED", 5_000)
    page = names_of(*((b"%d" % number, attributes(size=1)) for number in range(500)))
    async with opened({READDIR: always(NAME, page)}) as store:
        with pytest.raises(Corrupt, match=r"/d has no end.*over 5,000"):
            await names(store)


async def test_a_listing_that_comes_name_by_name_for_ever_is_an_outage() -> None:
    async def slow(number: int, _: bytes) -> list[bytes]:
        await asyncio.sleep(0.05)
        return [response(NAME, number, names_of((b"x", attributes(size=1))))]

    async with opened({READDIR: slow}, HASTY) as store:
        with pytest.raises(Unavailable):
            await names(store)


async def test_directories_without_end_are_named() -> None:
    async with opened({READDIR: once(names_of((b"deeper", DIRECTORY)))}) as store:
        with pytest.raises(Corrupt, match="no end"):
            await names(store)


def once(page: bytes) -> Callable[[int, bytes], list[bytes]]:
    """Each directory has one page: each handle is read in pairs of page and end."""
    served: set[bytes] = set()

    def answer(number: int, body: bytes) -> list[bytes]:
        if body in served:
            return [status(number, 1)]
        served.add(body)
        return [response(NAME, number, page)]

    return answer


@pytest.mark.parametrize("name", [b"sub/../../etc/passwd", b"/etc/passwd", b"x/y", b"x/..", b"../x"])
@pytest.mark.parametrize("what", [attributes(size=1), DIRECTORY], ids=["file", "directory"])
async def test_a_path_in_the_place_of_a_name_is_named(name: bytes, what: bytes) -> None:
    page = names_of((b"b", attributes(size=1)), (name, what))
    async with opened({READDIR: once(page)}) as store:
        with pytest.raises(Corrupt, match=f"a name that is none.*{name.decode()}"):
            await names(store)


@pytest.mark.parametrize("name", [b"a\0b", b"a\nb", b"a\rb", b"\x1b[31m", b"a\xff"])
@pytest.mark.parametrize("what", [attributes(size=1), DIRECTORY], ids=["file", "directory"])
async def test_a_name_with_control_characters_is_named(name: bytes, what: bytes) -> None:
    async with scripted_sftp({READDIR: once(names_of((name, what)))}) as address:
        with pytest.raises(FerryError) as caught:
            await open_dataset(parse_uri(f"sftp://{address}/d"), CONFIG)
        shown = ascii(name.decode("utf-8", "surrogateescape"))[1:-1]
        assert shown in str(caught.value).replace("\n", "\\n")
        assert str(caught.value).replace("\n", "").isprintable()


async def test_a_name_that_is_listed_twice_is_one_file() -> None:
    async with opened({READDIR: once(names_of(*[(b"a", attributes(size=10))] * 2))}) as store:
        assert await read(store) == DATA


@pytest.mark.parametrize(
    "page", [b"", b"\xff" * 4, b"\xff" * 100, struct.pack(">I", 1), struct.pack(">II", 1, 9)]
)
async def test_names_that_are_shorter_than_they_state_are_an_error(page: bytes) -> None:
    async with opened({READDIR: always(NAME, page)}, HASTY) as store:
        with pytest.raises(FerryError):
            await read(store)


async def test_a_real_path_without_a_name_is_an_error() -> None:
    link = attributes(mode=0o120777)
    answers: Answers = {
        READDIR: once(names_of((b"a", link))),
        STAT: always(ATTRS, DIRECTORY),
        REALPATH: always(NAME, bytes(4)),
    }
    async with opened(answers, HASTY) as store:
        with pytest.raises(FerryError):
            await names(store)


# Files.


def sends(data: bytes, most: int = 1 << 20) -> Callable[[int, bytes], list[bytes]]:
    """A file with these bytes, of which a response has no more than `most`."""

    def answer(number: int, body: bytes) -> list[bytes]:
        start, length = struct.unpack(">QI", body[-12:])
        found = data[start : start + min(length, most)]
        return [response(DATA_TYPE, number, text(found)) if found else status(number, 1)]

    return answer


async def test_a_file_that_ends_before_its_size_is_corrupt() -> None:
    async with opened({READ: sends(DATA[:4])}) as store:
        with pytest.raises(Corrupt):
            await read(store)


@pytest.mark.parametrize("most", [1 << 20, 3])
async def test_a_file_that_continues_behind_its_size_is_corrupt(most: int) -> None:
    async with opened({READ: sends(DATA + b"more", most)}) as store:
        with pytest.raises(Corrupt, match="more than 10 bytes"):
            await read(store)


async def test_a_file_of_exact_pieces_that_continues_is_corrupt() -> None:
    size = 64 << 10
    facts = attributes(size=size)
    answers: Answers = {
        READDIR: once(names_of((b"a", facts))),
        FSTAT: always(ATTRS, facts),
        READ: sends(bytes(size) + b"more", 32 << 10),
    }
    async with opened(answers) as store:
        with pytest.raises(Corrupt, match=f"more than {size} bytes"):
            await read(store)


async def test_more_bytes_than_were_requested_are_an_error() -> None:
    async with opened({READ: always(DATA_TYPE, text(bytes(100_000)))}, HASTY) as store:
        with pytest.raises(FerryError):
            await read(store)


@pytest.mark.parametrize("stated", [0, 9, 11, 0xFFFFFFFF])
async def test_data_that_is_not_as_long_as_it_states_is_an_error(stated: int) -> None:
    async with opened({READ: always(DATA_TYPE, struct.pack(">I", stated) + DATA)}, HASTY) as store:
        with pytest.raises(FerryError):
            await read(store)


async def test_small_responses_are_put_together() -> None:
    async with opened({READ: sends(DATA, 1)}) as store:
        assert await read(store) == DATA


async def test_empty_responses_without_end_are_an_error() -> None:
    async with opened({READ: always(DATA_TYPE, text(b""))}, HASTY) as store:
        with pytest.raises(FerryError):
            await read(store)


async def test_tiny_limits_of_a_server_do_not_multiply_requests() -> None:
    size, asked = 1 << 20, count()
    facts, sound = attributes(size=size), sends(bytes(size))

    def answer(number: int, body: bytes) -> list[bytes]:
        next(asked)
        return sound(number, body)

    answers: Answers = {
        2: text(b"limits@openssh.com") + text(b"1"),
        200: always(201, struct.pack(">QQQQ", 1, 1, 1, 1)),
        READDIR: once(names_of((b"a", facts))),
        FSTAT: always(ATTRS, facts),
        READ: answer,
    }
    async with opened(answers) as store:
        assert await read(store) == bytes(size)
    assert next(asked) < 100


# The protocol.


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\0", b"\xff" * 9, b"Welcome!\r\n" * 10, struct.pack(">IB", 5, 2), bytes(100)],
    ids=["empty", "short", "long", "text", "no version", "zeros"],
)
@pytest.mark.parametrize("kind", [1, OPENDIR, READDIR, OPEN, READ, FSTAT])
async def test_what_is_no_message_is_an_error(kind: int, garbage: bytes) -> None:
    async with opened({kind: lambda number, body: [garbage]}, HASTY) as store:
        with pytest.raises(FerryError) as caught:
            await read(store)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("kind", [OPENDIR, READDIR, OPEN, READ, FSTAT])
@pytest.mark.parametrize("other", [2, 101, HANDLE, DATA_TYPE, NAME, ATTRS, 255])
@pytest.mark.parametrize("body", [b"", bytes(20)], ids=len)
async def test_another_response_than_the_expected_one_is_never_a_file(
    kind: int, other: int, body: bytes
) -> None:
    async with opened({kind: always(other, body)}, HASTY) as store:
        with suppress(FerryError):
            assert await names(store) in (["a"], [])
            assert bytes(await store.read("a", 0, 10)) == DATA


async def test_a_response_to_nothing_is_an_error() -> None:
    async with opened({OPENDIR: lambda number, body: [status(number + 7, 0)]}, HASTY) as store:
        with pytest.raises(FerryError):
            await names(store)


async def test_a_message_without_end_is_an_error() -> None:
    """Its length is refused before its bytes are held."""
    async with opened(
        {OPENDIR: lambda number, body: [struct.pack(">I", 1 << 31), bytes(1 << 20)]}, HASTY
    ) as store:
        with pytest.raises(FerryError):
            await names(store)
