"""A write that fails says why, and leaves what was there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.scripted_ftp import Handler, ScriptedFtp, Session, scripted_ftp

PART = 1 << 16
LIMITS = Limits(part_bytes=PART)


def saying(*replies: str) -> Handler:
    """Replies in turn, the last one again and again."""
    left = list(replies)

    async def answer(session: Session, _: str) -> None:
        await session.say(left.pop(0) if len(left) > 1 else left[0])

    return answer


@asynccontextmanager
async def opened(**answers: Handler) -> AsyncIterator[tuple[ScriptedFtp, Store]]:
    async def stored(session: Session, _: str) -> None:
        await session.transfer(b"")

    replies = {"STOR": stored, "DELE": saying("250 deleted"), "RNFR": saying("350 go on"), **answers}
    async with scripted_ftp(replies) as server:
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig(), LIMITS)
        try:
            yield server, store
        finally:
            await store.close()


def cutting(last: str) -> Handler:
    """Takes some of an upload, and ends it with a reset and this reply."""

    async def answer(session: Session, _: str) -> None:
        (await session.data()).transport.abort()
        await session.say(last)

    return answer


def body() -> Iterator[bytes]:
    for _ in range(200):
        yield bytes(PART)


async def test_a_server_that_fails_to_write_is_named_and_its_space() -> None:
    async with opened(STOR=cutting("451 Failure writing to local file.")) as (_, store):
        with pytest.raises(Unavailable, match=r"fails to write .*/d/new \(451 Failure.*Free space at the s"):
            await store.write("new", body())


@pytest.mark.parametrize("reply", ["452 too big", "552 exceeded", "426 No space left on device; aborted."])
async def test_a_full_server_is_named(reply: str) -> None:
    async with opened(STOR=cutting(reply)) as (_, store):
        with pytest.raises(Unavailable, match=f"no space left to write .*{reply}"):
            await store.write("new", body())


async def test_a_lost_connection_remains_an_outage() -> None:
    async with opened(STOR=cutting("426 Failure reading network stream.")) as (_, store):
        with pytest.raises(Unavailable, match="does not respond for"):
            await store.write("new", body())


async def test_the_error_of_a_body_counts_more_than_what_the_server_says() -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * PART
        raise OSError(5, "of the body")

    async with opened(STOR=cutting("451 Failure writing to local file.")) as (_, store):
        with pytest.raises(OSError, match="of the body"):
            await store.write("new", failing())


async def test_where_nothing_may_be_renamed_the_file_that_is_there_remains() -> None:
    async with opened(RNTO=saying("550 denied")) as (server, store):
        with pytest.raises(AccessDenied, match="550 denied"):
            await store.write("a", b"new")
        assert "DELE /d/a" not in server.commands


async def test_a_server_that_does_not_replace_gets_the_old_file_deleted() -> None:
    replies = saying("550 exists", "250 other", "250 back", "250 renamed")
    async with opened(RNTO=replies) as (server, store):
        await store.write("a", b"new")
        assert "DELE /d/a" in server.commands


async def test_a_name_that_the_server_refuses_is_not_denied() -> None:
    async with opened(RNTO=saying("550 no", "250 other", "250 back", "550 no")) as (_, store):
        with pytest.raises(InvalidSpec, match=r"does not accept the name .*/d/new \(550 no"):
            await store.write("new", b"x")


@pytest.mark.parametrize("has_facts", [True, False])
async def test_a_file_under_another_spelling_of_its_name_is_not_replaced(has_facts: bool) -> None:
    there = {"/d/a", "/d/A"}

    def answering(reply: str) -> Handler:
        async def answer(session: Session, path: str) -> None:
            await session.say(*(reply.format(path).split("\n") if path in there else ["550 no"]))

        return answer

    replies = {"SIZE": answering("213 10"), "MLST": answering("250-\n Type=file;Size=10; {}\n250 End")}
    features = ("211-", " MLST Type*;", "211 End") if has_facts else ("500 no",)

    async def feat(session: Session, _: str) -> None:
        await session.say(*features)

    async with opened(FEAT=feat, RNTO=saying("250 renamed"), **replies) as (server, store):
        with pytest.raises(InvalidSpec, match=r"/d/A differs only in case .*\(a\)"):
            await store.write("A", b"new")
        assert not [each for each in server.commands if each.startswith(("STOR", "RNFR"))]
        await store.write("a", b"new")
        asked = [each for each in server.commands if each.startswith(("MLST", "SIZE"))]
        assert {each.partition(" ")[0] for each in asked} == {"MLST" if has_facts else "SIZE"}


async def test_a_missing_directory_is_created_before_an_upload_that_might_fail_only_at_its_end() -> None:
    async with opened(MKD=saying("257 created"), RNTO=saying("250 renamed")) as (server, store):
        await store.write("b/c/new", b"x")
        await store.write("a", b"x")
        await store.write("b", b"x")
    own = [line for line in server.commands if line.startswith(("CWD", "MKD"))]
    assert own == ["CWD /d/b/c", "MKD /d", "MKD /d/b", "MKD /d/b/c", "CWD /d"]


def failing_at_its_end(reply: str) -> Handler:
    """Takes an upload, and says then that it could not open the file."""

    async def answer(session: Session, _: str) -> None:
        await session.transfer(b"", reply)

    return answer


@pytest.mark.parametrize("reply", ["450 error during transfer", "550 denied", "553 no"])
async def test_an_upload_that_fails_where_nothing_may_be_written_is_denied(reply: str) -> None:
    async with opened(STOR=failing_at_its_end(reply), MKD=saying("550 Read only")) as (_, store):
        for name in ("new", "b/new"):
            with pytest.raises(AccessDenied, match=rf"denies access to .*/{name} \(5"):
                await store.write(name, b"x")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("450 error during transfer", Unavailable), ("550 denied", AccessDenied), ("553 no", InvalidSpec)],
)
async def test_an_upload_that_fails_where_other_names_are_taken_is_what_its_code_says(
    reply: str, expected: type[Exception]
) -> None:
    taken = {"MKD": saying("257 created"), "RMD": saying("250 removed")}
    async with opened(STOR=failing_at_its_end(reply), **taken) as (_, store):
        with pytest.raises(expected, match=reply):
            await store.write("new", b"x")
        with pytest.raises(InvalidSpec, match=r"does not accept the name .*/b/new"):
            await store.write("b/new", b"x")


async def test_a_directory_that_has_vanished_is_created_for_the_next_attempt() -> None:
    there: set[str] = {"/d", "/d/b"}

    async def enter(session: Session, path: str) -> None:
        await session.say("250 there" if path in there else "550 no")

    async def create(session: Session, path: str) -> None:
        there.add(path)
        await session.say("257 created")

    async def store_file(session: Session, path: str) -> None:
        await session.transfer(b"", "226 done" if path.rpartition("/")[0] in there else "450 no such file")

    steps = {"CWD": enter, "MKD": create, "RMD": saying("250 removed"), "STOR": store_file}
    async with opened(RNTO=saying("250 renamed"), **steps) as (_, store):
        await store.write("b/one", b"1")
        there.remove("/d/b")
        with pytest.raises(Unavailable, match="450 no such file"):
            await store.write("b/two", b"2")
        await store.write("b/two", b"2")


async def test_a_full_disk_at_the_end_of_an_upload_remains_one() -> None:
    async with opened(STOR=failing_at_its_end("450 no space left on device"), MKD=saying("550 no")) as (
        _,
        store,
    ):
        with pytest.raises(Unavailable, match=r"no space left to write .*/new"):
            await store.write("new", b"x")
