"""Small files of FTP servers are read without a thread; what is not as expected, a thread reads again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podferry.contract.errors import FerryError
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.ftp.sessions import MAX_SESSIONS
from podferry.storage.ftp.small_reads import MAX_BYTES, MAX_FAILED
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE
from tests.support.scripted_ftp import Handler, ScriptedFtp, Session, scripted_ftp

LIMITS = Limits(
    connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=2, retry_seconds=9
)
FILES = {f"/d/{number}": str(number).encode() * (number + 1) for number in range(3 * MAX_SESSIONS)}


@asynccontextmanager
async def opened(answers: dict[str, Handler]) -> AsyncIterator[tuple[ScriptedFtp, Store]]:
    async with scripted_ftp(answers) as server:
        server.files = dict(FILES)
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig(), LIMITS)
        try:
            async with asyncio.timeout(PATIENCE):
                yield server, store
        finally:
            await store.close()


async def listed(store: Store) -> dict[str, Entry]:
    return {entry.name: entry async for entry in store.entries()}


async def read(store: Store, entry: Entry) -> bytes:
    return bytes(await store.read(entry.name, 0, entry.size, entry.tag, entry.size))


async def test_the_next_port_is_asked_together_with_what_the_file_is() -> None:
    async with opened({}) as (server, store):
        entries = await listed(store)
        server.commands.clear()
        assert await read(store, entries["7"]) == FILES["/d/7"]
        assert await read(store, entries["8"]) == FILES["/d/8"]
        asked = ["RETR /d/7", "MLST /d/7", "PASV", "RETR /d/8", "MLST /d/8", "PASV"]
        assert server.commands == ["PASV", *asked]
        assert await store.read("7", 2, 3) == FILES["/d/7"][2:5]  # in a thread, which asks for its own port
        assert await read(store, entries["9"]) == FILES["/d/9"]


async def test_many_are_read_in_few_sessions_next_to_other_calls() -> None:
    async with opened({}) as (server, store):
        entries = await listed(store)
        found = await asyncio.gather(
            *(read(store, entry) for entry in entries.values()), *(store.stat(name) for name in entries)
        )
        assert found == [FILES[f"/d/{name}"] for name in entries] + list(entries.values())
        assert server.commands.count("TYPE I") <= MAX_SESSIONS


async def test_a_file_is_read_after_its_sessions_have_ended() -> None:
    async with opened({}) as (server, store):
        entries = await listed(store)
        await asyncio.gather(*(read(store, entry) for entry in entries.values()))
        await server.close()
        found = await asyncio.gather(*(read(store, entry) for entry in entries.values()))
        assert found == [FILES[f"/d/{name}"] for name in entries]


async def test_a_server_that_is_not_sound_is_left_to_the_threads() -> None:
    first: list[str] = []

    async def twice(session: Session, path: str) -> None:
        """Serves a file in every second transfer."""
        first.append(path)
        data = FILES[path]
        await session.transfer(data if first.count(path) % 2 == 0 else data[:-1])

    async with opened({"RETR": twice}) as (_, store):
        entries = list((await listed(store)).values())
        for number, entry in enumerate([*entries, *entries][: MAX_FAILED + 3]):
            first.clear()
            if number >= MAX_FAILED:
                first.append(f"/d/{entry.name}")
            assert await read(store, entry) == FILES[f"/d/{entry.name}"]
            assert first == [f"/d/{entry.name}"] * 2


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_small_file_ends_where_small_ends(is_listed: bool) -> None:
    """A larger one is not held up: a thread renews its time as it arrives."""
    async with opened({}) as (server, store):
        server.files = {"/d/a": bytes(MAX_BYTES + is_listed)}
        (entry,) = (await listed(store)).values()
        server.commands.clear()
        assert await read(store, entry) == bytes(MAX_BYTES + is_listed)
        assert (server.commands[-1] == "PASV") != is_listed


async def test_closing_the_store_ends_what_is_read() -> None:
    started = asyncio.Event()

    async def hang(session: Session, path: str) -> None:
        await session.data()
        started.set()
        await asyncio.Event().wait()

    async with opened({"RETR": hang}) as (_, store):
        (entry, *_) = (await listed(store)).values()
        reading = asyncio.create_task(read(store, entry))
        await started.wait()
        await store.close()
        with pytest.raises(FerryError):
            await reading
        await store.close()
