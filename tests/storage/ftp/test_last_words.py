"""vsftpd ends a session that it cannot continue: that is no answer about a path."""

from __future__ import annotations

import socket
import ssl

import pytest

from podferry.contract.errors import NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.ftp.last_words import received
from podferry.storage.store import StoreConfig, WriteMode
from tests.support.scripted_ftp import Session, scripted_ftp

LAST = "500 OOPS: vsf_sysutil_bind"


async def no_port(session: Session, _: str) -> None:
    await session.say(LAST)
    await session.close()


async def refused(session: Session, _: str) -> None:
    await session.say("550 no such file")


async def test_a_listing_without_a_port_is_repeated_in_another_session() -> None:
    async with scripted_ftp({}) as server:

        async def first(session: Session, argument: str) -> None:
            del server._answers["PASV"]
            await no_port(session, argument)

        server._answers["PASV"] = first
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig())
        try:
            assert [entry.name async for entry in store.entries()] == ["a"]
        finally:
            await store.close()


async def test_what_cannot_be_looked_for_does_not_exist_already() -> None:
    """A file is missing, and the listing that would show it fails: no writer was faster."""
    async with scripted_ftp({"PASV": no_port, "MLST": refused}) as server:
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig())
        try:
            with pytest.raises(Unavailable, match="500 OOPS"):
                await store.write("new", b"x", WriteMode.CREATE)
        finally:
            await store.close()


async def test_a_missing_file_is_missing_once_there_is_a_port() -> None:
    async with scripted_ftp({"MLST": refused}) as server:

        async def first(session: Session, argument: str) -> None:
            del server._answers["PASV"]
            await no_port(session, argument)

        server._answers["PASV"] = first
        store = open_store(parse_uri(f"ftp://{server.address}/d"), StoreConfig())
        try:
            with pytest.raises(NotFound):
                await store.stat("new")
        finally:
            await store.close()


class Control:
    """A connection with TLS that gets this."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def recv(self, _: int) -> bytes:
        raise self._error


def ssl_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


def test_last_words_in_the_clear_end_a_session_with_tls() -> None:
    with pytest.raises(ConnectionAbortedError, match="outside of TLS") as caught:
        received(Control(ssl_error("WRONG_VERSION_NUMBER")))  # type: ignore[arg-type]
    assert caught.value.__cause__ is None
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        received(Control(ssl_error("TLSV13_ALERT_CERTIFICATE_REQUIRED")))  # type: ignore[arg-type]


def test_what_is_received_is_passed_on() -> None:
    server, client = socket.socketpair()
    with server, client:
        server.sendall(b"220 ready\r\n")
        assert received(client) == b"220 ready\r\n"
