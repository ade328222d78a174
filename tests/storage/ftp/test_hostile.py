"""FTP servers that lie, hang and never end: right bytes, or an error that names it, in bounded time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import pytest

from podferry.contract.errors import Changed, Corrupt, FerryError, InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.ftp.small_reads import MAX_BYTES
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE
from tests.support.scripted_ftp import FACTS, Handler, ScriptedFtp, Session, scripted_ftp

DATA = b"0123456789"
HASTY = Limits(connect_seconds=1, stall_seconds=0.3, request_seconds=0.6, retries=1, retry_seconds=0.5)
"""For servers that never respond."""
PATIENT = Limits(
    connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=2, retry_seconds=9
)


@asynccontextmanager
async def opened(
    answers: dict[str, Handler], limits: Limits = PATIENT
) -> AsyncIterator[tuple[ScriptedFtp, Store]]:
    async with scripted_ftp(answers) as server:
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig(), limits)
        try:
            async with asyncio.timeout(PATIENCE):
                yield server, store
        finally:
            await store.close()


async def names(store: Store) -> list[str]:
    return [entry.name async for entry in store.entries()]


async def read(store: Store) -> bytes:
    """The file as it is fetched: after it was listed."""
    (entry,) = [entry async for entry in store.entries()]
    return bytes(await store.read(entry.name, 0, entry.size, entry.tag, entry.size))


def lists(*lines: str) -> Handler:
    async def answer(session: Session, _: str) -> None:
        await session.transfer("".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape"))

    return answer


def replies(*lines: str) -> Handler:
    async def answer(session: Session, _: str) -> None:
        await session.say(*lines)

    return answer


@pytest.mark.parametrize("reply", ["530 Please login with USER and PASS.", "500 unknown", "534 no"])
async def test_a_server_that_has_no_tls_is_named(reply: str) -> None:
    async with scripted_ftp({"AUTH": replies(reply)}) as server:
        store = open_store(parse_uri(f"ftps://{server.address}/d"), StoreConfig(), PATIENT)
        with pytest.raises(
            InvalidSpec, match=rf"not use TLS \(AUTH TLS: '{reply}.*Write ftp:// instead of ftps://"
        ):
            await store.children()
        await store.close()
    assert "USER anonymous" not in server.commands


@pytest.mark.parametrize(
    "greeting", ["SSH-2.0-OpenSSH_9.2p1 Debian-2", "* OK IMAP4rev1 ready", "RFB 003.008"]
)
async def test_a_server_of_another_kind_is_named_with_its_greeting(greeting: str) -> None:
    async with scripted_ftp({}) as server:
        server.banner = replies(greeting)
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig(), PATIENT)
        with pytest.raises(InvalidSpec, match=f"as an FTP server .*{re.escape(greeting)}.*Check"):
            await store.children()
        await store.close()
    assert not server.commands


async def nothing(session: Session, _: str) -> None:
    """Responds never."""
    await asyncio.Event().wait()


async def reset(session: Session, _: str) -> None:
    (await session.data()).write(FACTS.format(1, "b").encode() + b"\r\n")
    await session.close()


def without_end(piece: bytes, *, data: bool) -> Handler:
    async def answer(session: Session, _: str) -> None:
        writer = await session.data() if data else session.writer
        while True:
            writer.write(piece)
            await writer.drain()

    return answer


def drop_by_drop(*, data: bool) -> Handler:
    async def answer(session: Session, _: str) -> None:
        writer = await session.data() if data else session.writer
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    return answer


# Directories.


async def test_a_sound_server_is_read() -> None:
    async with opened({}) as (_, store):
        assert await read(store) == DATA


@pytest.mark.parametrize("command", ["CWD", "PASV", "MLSD"])
async def test_a_directory_that_hangs_is_an_outage(command: str) -> None:
    async with opened({command: nothing}, HASTY) as (_, store):
        with pytest.raises(Unavailable, match="does not respond"):
            await names(store)


async def test_a_reset_in_a_listing_is_an_outage() -> None:
    async with opened({"MLSD": reset}) as (_, store):
        with pytest.raises(Unavailable):
            await names(store)


@pytest.mark.parametrize("reply", ["426 cut", "451 no", "226 Transfer done (but failed to open directory)."])
async def test_a_listing_that_its_server_calls_failed_is_an_error(reply: str) -> None:
    async def answer(session: Session, _: str) -> None:
        await session.transfer(FACTS.format(1, "b").encode() + b"\r\n", reply)

    async with opened({"MLSD": answer}) as (_, store):
        with pytest.raises(FerryError):
            await names(store)


async def test_a_listing_that_ends_within_a_line_is_cut() -> None:
    async def answer(session: Session, _: str) -> None:
        await session.transfer(f"{FACTS.format(1, 'b')}\r\n{FACTS.format(1, 'c')}".encode())

    async with opened({"MLSD": answer}) as (_, store):
        with pytest.raises(Unavailable):
            await names(store)


@pytest.mark.parametrize("piece", [b"x" * 65536, (FACTS.format(1, "b") + "\r\n").encode() * 100])
async def test_a_listing_without_end_is_named(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("podferry.storage.ftp.directories"), "MAX_LISTED", 5_000)
    async with opened({"MLSD": without_end(piece, data=True)}) as (_, store):
        with pytest.raises(Corrupt, match=r"/d.*(no end|too long)"):
            await names(store)


@pytest.mark.parametrize("piece", [b"220-x\r\n" * 1000, b"x" * 65536], ids=["lines", "one line"])
@pytest.mark.parametrize("command", ["banner", "FEAT", "CWD", "MLST", "MDTM"])
async def test_a_reply_without_end_is_named(command: str, piece: bytes) -> None:
    endless = without_end(piece, data=False)
    answers: dict[str, Handler] = {} if command == "banner" else {command: endless}
    if command == "MDTM":
        answers["MLSD"] = lists("Type=file;Size=10; a")
    async with opened(answers) as (server, store):
        server.banner = endless if command == "banner" else server.banner
        with pytest.raises(Corrupt, match="reply"):
            await store.stat("a") if command == "MLST" else await names(store)


@pytest.mark.parametrize(
    ("command", "data"), [("MLSD", True), ("MLSD", False), ("FEAT", False), ("RETR", True)]
)
async def test_a_server_that_sends_drop_by_drop_is_an_outage(command: str, data: bool) -> None:
    async with opened({command: drop_by_drop(data=data)}, HASTY) as (server, store):
        server.files["/d/a"] = bytes(1 << 20)
        with pytest.raises(Unavailable):
            await read(store)


@pytest.mark.parametrize("name", ["sub/../../etc/passwd", "/etc/passwd", "x/y", ""])
@pytest.mark.parametrize("kind", ["file", "dir"])
async def test_a_name_that_is_none_is_named(name: str, kind: str) -> None:
    row = f"Type={kind};Size=1;Modify=20261123200000; {name}"
    async with opened({"MLSD": lists(FACTS.format(1, "b"), row)}) as (_, store):
        with pytest.raises(Corrupt, match=f"{name or chr(39)}"):
            await names(store)


@pytest.mark.parametrize("name", ["a\0b", "a\rb", "\x1b[31m", "a\udcff"])
@pytest.mark.parametrize("kind", ["file", "dir"])
async def test_a_name_with_control_characters_is_named(name: str, kind: str) -> None:
    row = f"Type={kind};Size=1;Modify=20261123200000; {name}"
    async with scripted_ftp({"MLSD": lists(row)}) as server:
        server.files[f"/d/{name}/b"] = b"1"
        with pytest.raises(FerryError) as caught:
            await open_dataset(parse_uri(f"ftp://{server.address}/d"), StoreConfig())
        assert ascii(name)[1:-1] in str(caught.value)
        assert str(caught.value).isprintable()


async def test_a_name_that_is_listed_twice_is_one_file() -> None:
    async with opened({"MLSD": lists(*[FACTS.format(10, "a")] * 2)}) as (_, store):
        assert await read(store) == DATA


async def test_the_directory_itself_and_the_one_above_are_no_names() -> None:
    others = [f"Type={kind};Modify=20261123200000; {name}" for kind, name in OTHERS]
    async with opened({"MLSD": lists(*others, FACTS.format(10, "a"))}) as (_, store):
        assert await names(store) == ["a"]


OTHERS = [("cdir", "."), ("cdir", "/d"), ("pdir", ".."), ("pdir", "/"), ("dir", "."), ("dir", "..")]


async def test_a_size_that_is_not_listed_is_asked_for() -> None:
    async with opened({"MLSD": lists("Type=file;Modify=20261123200000; a")}) as (_, store):
        assert await read(store) == DATA


async def test_directories_without_end_are_named() -> None:
    deeper = lists("Type=dir;Modify=20261123200000; deeper")
    async with opened({"MLSD": deeper, "CWD": replies("250 there")}) as (_, store):
        with pytest.raises(Corrupt, match="no end"):
            await names(store)


# Files.


def sends(data: bytes, last: str = "226 done") -> Handler:
    async def answer(session: Session, _: str) -> None:
        await session.transfer(data, last)

    return answer


@pytest.mark.parametrize("last", ["226 done", "426 cut", "451 no"])
async def test_a_file_that_ends_before_its_size_is_an_error(last: str) -> None:
    async with opened({"RETR": sends(DATA[:4], last), "REST": replies("350 yes")}) as (_, store):
        with pytest.raises((Corrupt, Unavailable)):
            await read(store)


async def test_a_file_that_never_goes_past_a_byte_is_corrupt() -> None:
    async with opened({}) as (server, store):
        server._answers["RETR"] = sends(DATA[:4])
        server._answers["REST"] = replies("350 yes")

        async def rest(session: Session, argument: str) -> None:
            server._answers["RETR"] = sends(DATA[int(argument) : 4])
            await session.say("350 yes")

        server._answers["REST"] = rest
        with pytest.raises(Corrupt, match="4 bytes"):
            await read(store)


async def test_a_file_that_is_longer_behind_its_size_is_corrupt() -> None:
    async with opened({"RETR": sends(DATA + b"more")}) as (_, store):
        with pytest.raises(Corrupt, match="more than 10 bytes"):
            await read(store)


async def test_a_cut_that_the_server_takes_for_an_end_is_resumed() -> None:
    large = DATA * MAX_BYTES  # a small file is read again
    async with opened({}) as (server, store):
        server.files = {"/d/a": large}

        async def rest(session: Session, argument: str) -> None:
            server._answers["RETR"] = sends(large[int(argument) :])
            await session.say("350 yes")

        server._answers |= {"RETR": sends(large[:4]), "REST": rest}
        assert await read(store) == large
        assert [command for command in server.commands if command.startswith("REST")] == ["REST 4"]


async def test_a_small_file_that_was_cut_is_read_again() -> None:
    async with opened({}) as (server, store):

        async def answer(session: Session, path: str) -> None:
            del server._answers["RETR"]
            await session.transfer(DATA[:4])

        server._answers["RETR"] = answer
        assert await read(store) == DATA
        assert server.commands.count("RETR /d/a") == 2


async def test_a_range_from_another_start_is_not_taken() -> None:
    """A server that knows no REST sends the file from its start."""
    async with opened({"REST": replies("502 unknown")}) as (_, store):
        (entry,) = [entry async for entry in store.entries()]
        with pytest.raises(FerryError):
            await store.read("a", 4, 3, entry.tag, entry.size)


@pytest.mark.parametrize(
    "facts", ["Type=file;Size=11;Modify=20261123200000;", "Type=file;Size=10;Modify=2027;"]
)
async def test_two_commands_that_contradict_each_other_are_an_error(facts: str) -> None:
    async with opened({"MLST": replies("250-facts", f" {facts} /d/a", "250 end")}) as (_, store):
        with pytest.raises(Changed):
            await read(store)


async def test_data_comes_from_the_named_host_alone() -> None:
    """A server must not have its clients connect to others (the bounce attack, RFC 2577)."""
    bounced: list[str] = []
    elsewhere = await asyncio.start_server(lambda reader, writer: bounced.append("connected"), "127.0.0.9", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    passive = f"227 Entering Passive Mode (127,0,0,9,{port >> 8},{port & 255})"
    extended = f"229 Entering Extended Passive Mode (|1|127.0.0.9|{port}|)"
    async with elsewhere, opened({"PASV": replies(passive), "EPSV": replies(extended)}) as (_, store):
        with pytest.raises(FerryError):
            await names(store)
    assert bounced == []


@pytest.mark.parametrize(
    "reply", ["227 nothing", "227 (999,999,999,999,999,999)", "229 (|||99999999|)", "200 ok"]
)
async def test_a_port_that_is_none_is_an_error(reply: str) -> None:
    async with opened({"PASV": replies(reply), "EPSV": replies(reply)}) as (_, store):
        with pytest.raises(FerryError):
            await names(store)


@pytest.mark.parametrize("reply", ["", "hello", "999 x", "\0\xff\xfe"])
@pytest.mark.parametrize("command", ["banner", "USER", "TYPE", "CWD", "MLSD", "MLST", "RETR"])
async def test_what_is_no_reply_is_an_error(command: str, reply: str) -> None:
    answers: dict[str, Handler] = {} if command == "banner" else {command: replies(reply)}
    async with opened(answers, HASTY) as (server, store):
        server.banner = replies(reply) if command == "banner" else server.banner
        with pytest.raises(FerryError) as caught:
            await read(store)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("size", ["-1", "99999999999999999999", "x", ""])
async def test_a_size_that_is_none_is_an_error(size: str) -> None:
    row = f"Type=file;Size={size};Modify=20261123200000;"
    answers = {"MLSD": lists(f"{row} a"), "MLST": replies("250-facts", f" {row} /d/a", "250 end")}
    async with opened(answers, HASTY) as (_, store):
        with pytest.raises(FerryError):
            await read(store)
