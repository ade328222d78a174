"""A server of SFTP that answers as a test says, and as a sound server where the test says nothing."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from itertools import count

import asyncssh

Answer = Callable[[int, bytes], list[bytes] | Awaitable[list[bytes]]]
"""What is sent for a request, by its number and what follows: messages with their lengths."""
Answers = Mapping[int, Answer | bytes]
"""By the type of the request; of 2 what the greeting announces."""
DATA = b"0123456789"
INIT, OPEN, CLOSE, READ, FSTAT, OPENDIR, READDIR, STAT = 1, 3, 4, 5, 8, 11, 12, 17
VERSION, STATUS, HANDLE, DATA_TYPE, NAME, ATTRS = 2, 101, 102, 103, 104, 105
OK, EOF, UNSUPPORTED = 0, 1, 8


def text(data: bytes) -> bytes:
    """A string with its length."""
    return struct.pack(">I", len(data)) + data


def response(kind: int, number: int, body: bytes) -> bytes:
    """A message with its length."""
    return struct.pack(">IBI", len(body) + 5, kind, number) + body


def status(number: int, code: int) -> bytes:
    """A STATUS."""
    return response(STATUS, number, struct.pack(">I", code) + text(b"as scripted") + text(b""))


def attributes(*, size: int = 0, mode: int = 0o100644) -> bytes:
    """Of a file that was changed at 7."""
    return struct.pack(">IQIII", 0x1 | 0x4 | 0x8, size, mode, 7, 7)


DIRECTORY = attributes(mode=0o40755)


def names_of(*members: tuple[bytes, bytes]) -> bytes:
    """What a NAME has."""
    rows = b"".join(text(name) + text(b"-rw-r--r--") + found for name, found in members)
    return struct.pack(">I", len(members)) + rows


class ScriptedSession(asyncssh.SSHServerSession[bytes]):
    """One channel: the directory `d` with the file `a`, unless the answers say otherwise."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._handles = count()
        self._read: set[bytes] = set()
        self._buffer = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._channel: asyncssh.SSHServerChannel[bytes]

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._buffer += data
        while len(self._buffer) >= (end := 4 + int.from_bytes(self._buffer[:4], "big")) > 4:
            message, self._buffer = self._buffer[4:end], self._buffer[end:]
            task = asyncio.create_task(self._answer(message[0], message[1:5], message[5:]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._tasks:
            task.cancel()

    async def _answer(self, kind: int, number: bytes, body: bytes) -> None:
        found = int.from_bytes(number, "big")
        own = self._answers.get(kind)
        if own is None or isinstance(own, bytes):
            parts = [self._sound(kind, found, body)]
        else:
            answered = own(found, body)
            parts = answered if isinstance(answered, list) else await answered
        with suppress(OSError, asyncssh.Error):
            for part in parts:
                self._channel.write(part)

    def _sound(self, kind: int, number: int, body: bytes) -> bytes:
        if kind == INIT:
            announced = self._answers.get(VERSION, b"")
            return response(VERSION, 3, announced if isinstance(announced, bytes) else b"")
        if kind in {OPEN, OPENDIR}:
            return response(HANDLE, number, text(b"%d" % next(self._handles)))
        if kind == READDIR:
            end = body in self._read
            self._read.add(body)
            page = names_of((b"a", attributes(size=len(DATA))))
            return status(number, EOF) if end else response(NAME, number, page)
        if kind in {FSTAT, STAT}:
            return response(ATTRS, number, attributes(size=len(DATA)))
        if kind == READ:
            start, length = struct.unpack(">QI", body[-12:])
            part = DATA[start : start + length]
            return response(DATA_TYPE, number, text(part)) if part else status(number, EOF)
        return status(number, OK if kind == CLOSE else UNSUPPORTED)


class _AnyPassword(asyncssh.SSHServer):
    """Lets everybody in."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return True

    def session_requested(self) -> ScriptedSession:
        return ScriptedSession(self._answers)


@cache
def _host_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@asynccontextmanager
async def scripted_sftp(answers: Answers) -> AsyncIterator[str]:
    """The address of a server with these answers, `host:port`."""
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[_host_key()],
        server_factory=partial(_AnyPassword, answers),
        encoding=None,
    )
    try:
        yield f"127.0.0.1:{server.get_port()}"
    finally:
        server.close()
        await server.wait_closed()
