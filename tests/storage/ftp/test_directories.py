"""Another session creates a directory or a file between two commands: neither counts as denied."""

from __future__ import annotations

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from tests.support.scripted_ftp import Handler, ScriptedFtp, Session, scripted_ftp


async def unknown(session: Session, _: str) -> None:
    await session.say("500 unknown command")


def created_by_another(server: ScriptedFtp, path: str, *, command: str = "CWD") -> Handler:
    """The first such command is refused; then another session creates a file."""

    async def answer(session: Session, argument: str) -> None:
        del server._answers[command]
        await session.say(f"550 no {argument}")
        server.files[path] = b"0123456789"

    return answer


def store_of(server: ScriptedFtp) -> Store:
    return open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig())


async def test_a_name_in_a_directory_that_was_just_created_is_missing() -> None:
    async def has_it_now(session: Session, _: str) -> None:
        await session.transfer(b"Type=dir; new\r\n" if server.directory == "/d" else b"Type=file; other\r\n")

    async with scripted_ftp({"FEAT": unknown, "MLSD": has_it_now}) as server:
        server._answers["CWD"] = created_by_another(server, "/d/new/other")
        store = store_of(server)
        try:
            with pytest.raises(NotFound):
                await store.stat("new/mine")
        finally:
            await store.close()


async def test_a_file_that_was_just_created_is_there() -> None:
    async with scripted_ftp({}) as server:
        server._answers["MLST"] = created_by_another(server, "/d/new", command="MLST")
        store = store_of(server)
        try:
            assert (await store.stat("new")).size == 10
        finally:
            await store.close()


async def test_a_server_without_sizes_of_files_lists_them() -> None:
    async def no_command(session: Session, _: str) -> None:
        await session.say("500 Command not understood.")

    async def rows(session: Session, _: str) -> None:
        await session.transfer(b"-rw-r--r-- 1 u g 10 Jan 01 2024 a\r\n")

    answers = {"SIZE": no_command, "MLSD": no_command, "MLST": no_command, "LIST": rows}
    async with scripted_ftp({"FEAT": no_command, **answers}) as server:
        store = store_of(server)
        try:
            assert (await store.stat("a")).size == 10
            with pytest.raises(NotFound):
                await store.stat("missing")
        finally:
            await store.close()


async def test_a_file_that_is_listed_and_may_not_be_read_is_denied() -> None:
    async def refused(session: Session, _: str) -> None:
        await session.say("550 permission denied")

    async with scripted_ftp({"MLST": refused}) as server:
        store = store_of(server)
        with pytest.raises(AccessDenied, match="permission denied"):
            await store.stat("a")
        await store.close()


async def test_a_file_that_another_one_has_created_again_is_deleted() -> None:
    async def delete(session: Session, path: str) -> None:
        existed = server.files.pop(path, None)
        if len(refused) < 2:
            refused.append(path)
            server.files[path] = b"again"
            existed = None
        await session.say("250 deleted" if existed else "550 no such file")

    refused: list[str] = []
    async with scripted_ftp({"DELE": delete}) as server:
        store = store_of(server)
        try:
            await store.delete(["a"])
        finally:
            await store.close()
        assert (server.files, refused) == ({}, ["/d/a", "/d/a"])


@pytest.mark.parametrize("reply", ["550 Permission denied.", "502 not implemented", "530 no"])
async def test_a_server_without_passive_mode_denies_nothing(reply: str) -> None:
    async def refuse(session: Session, _: str) -> None:
        await session.say(reply)

    async with scripted_ftp({"PASV": refuse}) as server:
        store = store_of(server)
        for call in (store.children(), store.read("a"), store.write("b", b"1")):
            with pytest.raises(InvalidSpec, match=rf"refuses passive mode.*'{reply}'.*pasv_enable=YES"):
                await call
        assert (await store.stat("a")).size == 10
        await store.close()
