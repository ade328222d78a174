"""Reads small files on the event loop, several sessions at a time.

In threads, most of the time of a small file is theirs: each of its replies wakes one, which then waits for
the interpreter's lock. Only what a sound server does is known here; for anything else, the store reads in a
thread, and names what is wrong.
"""

from __future__ import annotations

import asyncio
import errno
import ftplib
import socket
import time
from typing import Any

from podferry.contract.errors import FerryError
from podferry.storage.ftp.facts import read_facts, tag_of
from podferry.storage.ftp.readiness import IS_SUPPORTED, Readiness
from podferry.storage.ftp.replies import MAX_LINE_BYTES
from podferry.storage.ftp.session import FtpSession, command_line
from podferry.storage.ftp.sessions import MAX_SESSIONS, Sessions
from podferry.storage.ftp.worker_threads import WorkerThreads
from podferry.storage.timeouts_and_limits import Limits

MAX_BYTES = 256 * 1024
"""Of a small file: all sessions together read 2 MiB within `Limits.stall_seconds`, even at 0.1 MiB/s."""
MAX_FAILED = 2 * MAX_SESSIONS
"""Reads in a row that have failed until no more are tried: more than there are sessions, since a server may
have ended all of them while they were idle."""
PORT_SECONDS = 5.0
"""How long the port for the next data connection counts as open. Servers close it after 30 s and more."""
COMPLETE = ("226", "250")


class SmallReads:
    """Reads small files in the sessions of a store."""

    def __init__(self, sessions: Sessions, threads: WorkerThreads, limits: Limits) -> None:
        """Prepare.

        Args:
            sessions: Of the store.
            threads: For opening sessions, which blocks.
            limits: One file takes at most `stall_seconds`.
        """
        self._sessions, self._threads, self._limits = sessions, threads, limits
        self._free = asyncio.Semaphore(MAX_SESSIONS)
        self._running: set[asyncio.Timeout] = set()
        self._readiness: Readiness | None = None
        self._failed = 0
        self._closed = False

    async def read(self, path: str, size: int, tag: str) -> memoryview | None:
        """All bytes of a file, if the server says afterwards that it is still the listed one; else None.

        Args:
            path: At the server.
            size: As listed.
            tag: As listed.
        """
        if not (IS_SUPPORTED and 0 < size <= MAX_BYTES) or self._closed:
            return None
        async with self._free:
            if self._closed or self._failed >= MAX_FAILED:
                return None
            data = await self._attempt(path, size, tag)
        self._failed = 0 if data is not None else self._failed + 1
        return data

    async def _attempt(self, path: str, size: int, tag: str) -> memoryview | None:
        try:
            while (session := self._sessions.idle()) is None:
                await self._threads.run(self._sessions.open_one)
        except (FerryError, ftplib.Error, OSError, EOFError):
            return None
        self._readiness = self._readiness or Readiness()
        running, data = asyncio.timeout(self._limits.stall_seconds), None
        self._running.add(running)
        try:
            async with running:
                data = await _SmallRead(session, self._readiness).run(path, size, tag)
        except (ftplib.Error, OSError, EOFError, ValueError):
            return None
        finally:
            self._running.discard(running)
            self._sessions.give_back(session, sound=data is not None)
        return data

    async def close(self) -> None:
        """End the reads that are running; no more are tried."""
        if self._closed:
            return
        self._closed = True
        for running in self._running:
            if not running.expired():
                running.reschedule(0)
        for _ in range(MAX_SESSIONS):  # all have ended
            await self._free.acquire()
        if self._readiness is not None:
            self._readiness.close()


class _SmallRead:
    """One file in one session."""

    def __init__(self, session: FtpSession, readiness: Readiness) -> None:
        assert session.sock is not None  # noqa: S101 - it has logged in
        self._session, self._control, self._readiness = session, session.sock, readiness
        self._passive = "PASV" if session.af == socket.AF_INET else "EPSV"

    async def run(self, path: str, size: int, tag: str) -> memoryview | None:
        """The bytes; None if the file is not as listed.

        Raises:
            ftplib.Error, OSError, EOFError, ValueError: The server does not do what a sound one does.
        """
        if self._control.gettimeout():  # a thread has used it
            self._control.settimeout(0)
            self._readiness.add(self._control)
        address = await self._data_address()
        with socket.socket(self._session.af) as data:
            data.setblocking(False)
            if data.connect_ex(address) not in {0, errno.EINPROGRESS}:
                return None
            self._readiness.add(data)
            self._send(f"RETR {path}")
            if (await self._reply())[:1] != "1":
                return None
            received = await self._received(data, size)
        return received if received is not None and await self._is_listed(path, size, tag) else None

    async def _received(self, data: socket.socket, size: int) -> memoryview | None:
        """What comes over a data connection; None unless it has this size."""
        buffer, count = memoryview(bytearray(size + 1)), 0  # one more, which shows a file that is longer
        while more := await self._readiness.receive_into(data, buffer[count:]):
            count += more
        return buffer[:size] if count == size else None

    async def _is_listed(self, path: str, size: int, tag: str) -> bool:
        """Whether the transfer is complete, and the file still the listed one.

        Where the next data connection goes is asked at the same time: that saves a round trip.
        """
        fact = "MLST" if "MLST" in self._session.features else "MDTM"
        self._send(f"{fact} {path}", self._passive)
        ended, stated, passive = [await self._reply() for _ in range(3)]
        self._session.passive_port = _port(passive), time.monotonic()
        return ended[:3] in COMPLETE and _stated_tag(stated, size) == tag

    async def _data_address(self) -> tuple[Any, ...]:
        """Where the data connection goes: to the server's own host, whatever it says."""
        known, self._session.passive_port = self._session.passive_port, None
        if known is None or time.monotonic() - known[1] > PORT_SECONDS:
            self._send(self._passive)
            known = _port(await self._reply()), 0
        host, _, *more = self._control.getpeername()
        return host, known[0], *more

    def _send(self, *commands: str) -> None:
        lines = b"".join(map(command_line, commands))
        if self._control.send(lines) != len(lines):
            raise BlockingIOError(errno.EAGAIN, "the server does not take commands")
        # The server's second reply waits for the acknowledgement of its first, which would wait 40 ms.
        self._control.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    async def _reply(self) -> str:
        replies = self._session.replies
        while (reply := replies.take()) is None:
            buffer = memoryview(bytearray(MAX_LINE_BYTES))
            count = await self._readiness.receive_into(self._control, buffer)
            if not count:
                raise EOFError
            replies.feed(buffer[:count])
        return reply


def _port(reply: str) -> int:
    """The port in a reply to PASV or EPSV. Sources: RFC 959, section 4.1.2, and RFC 2428."""
    is_old = reply[:3] == "227"
    port = ftplib.parse227(reply)[1] if is_old else int(ftplib.parse229(reply, ("", 0))[1])
    if not 0 < port < 1 << 16:
        raise ftplib.error_proto(reply)
    return port


def _stated_tag(reply: str, size: int) -> str:
    """The tag of a file by a reply to MLST or MDTM; empty if it is another size, or not stated."""
    if reply[:3] == "213":
        return tag_of(size, reply[4:].strip())
    lines = reply.split("\n")
    facts = read_facts(lines[1]) if reply[:3] == "250" and len(lines) > 2 else None
    if facts is None or facts.kind != "file" or facts.size != size or not facts.modified:
        return ""
    return tag_of(size, facts.modified)
