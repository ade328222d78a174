"""The operations of SFTP on one channel: each waits for its own response alone."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any, TypeVar

from podferry.storage.lazy_log import warn
from podferry.storage.sftp.channel import SftpChannel, expect
from podferry.storage.sftp.messages import (
    Attributes,
    Mode,
    Name,
    ProtocolError,
    Request,
    Response,
    read_attributes,
    read_extensions,
    read_handle,
    read_names,
    read_status,
    string,
    write_body,
)
from podferry.storage.timeouts_and_limits import KIB

T = TypeVar("T")
DATA_BYTES = 32 * KIB
"""Of a READ or WRITE that every server takes. Source: draft-ietf-secsh-filexfer-02, section 3."""
MAX_DATA_BYTES = 255 * KIB
"""What OpenSSH takes at most; more would only make a response wait for others."""
NO_ATTRIBUTES = bytes(4)
POSIX_RENAME, HARD_LINK, SYNC = "posix-rename@openssh.com", "hardlink@openssh.com", "fsync@openssh.com"
LIMITS, FREE_SPACE = "limits@openssh.com", "statvfs@openssh.com"


class SftpClient:
    """An SFTP channel with what its server can do.

    Attributes:
        channel: Where requests are sent.
        extensions: That the server announces.
        rejected: Its responses to those that it does not support after all; connections share them.
        read_bytes, write_bytes: The largest READ and WRITE.
        users: How many operations use it.
    """

    def __init__(self, channel: SftpChannel, rejected: dict[str, str]) -> None:
        self.channel, self.rejected = channel, rejected
        self._loop = asyncio.get_running_loop()
        self.extensions: frozenset[str] = frozenset()
        self.read_bytes = self.write_bytes = DATA_BYTES
        self.users = 0

    async def start(self) -> None:
        """Wait for the server's greeting, and ask for its limits."""
        self.extensions = frozenset(read_extensions(memoryview(await self.channel.version)))
        if LIMITS not in self.extensions:
            return
        limits = await self._extended(LIMITS, b"")
        read, write = (int.from_bytes(limits[start : start + 8], "big") for start in (8, 16))
        self.read_bytes = max(DATA_BYTES, min(read, MAX_DATA_BYTES))
        self.write_bytes = max(DATA_BYTES, min(write, MAX_DATA_BYTES))

    def has(self, extension: str) -> bool:
        """Whether the server announces an extension, and has not rejected it."""
        return extension in self.extensions and extension not in self.rejected

    @property
    def failure(self) -> Exception | None:
        """Why the channel is of no use any more, or None."""
        return self.channel.failure

    def abort(self, error: Exception) -> None:
        """End the channel at once."""
        self.channel.fail(error)

    # Files.

    async def open(self, path: bytes, mode: Mode = Mode.READ) -> bytes:
        """The handle of a file."""
        body = string(path) + mode.to_bytes(4, "big") + NO_ATTRIBUTES
        return await self._handle(Request.OPEN, body, path)

    def close(self, handle: bytes) -> None:
        """Close a handle, without waiting for it."""
        self._send(Request.CLOSE, handle, lambda kind, data: None)

    def write(self, handle: bytes, start: int, data: bytes | memoryview) -> list[asyncio.Future[None]]:
        """Write at a position, in pieces."""
        view = memoryview(data)
        return [
            self._status(Request.WRITE, write_body(handle, start + at, view[at : at + self.write_bytes]))
            for at in range(0, len(view), self.write_bytes)
        ]

    def attributes_of(self, handle: bytes, path: bytes) -> asyncio.Future[Attributes]:
        """Of an open file."""
        return self._send(Request.FSTAT, handle, _attributes(path))

    def attributes(self, path: bytes) -> asyncio.Future[Attributes]:
        """Of what is at a path, or of what a link there leads to."""
        return self._send(Request.STAT, string(path), _attributes(path))

    async def sync(self, handle: bytes) -> None:
        """Have the server write a file to its disk, if it can."""
        if SYNC in self.extensions:
            await self._extended(SYNC, handle)

    # Names.

    async def open_directory(self, path: bytes) -> bytes:
        """The handle of a directory."""
        return await self._handle(Request.OPENDIR, string(path), path)

    def read_directory(self, handle: bytes, path: bytes) -> asyncio.Future[list[Name]]:
        """The next names in a directory; empty behind the last one."""

        def names(kind: int, data: memoryview) -> list[Name]:
            try:
                expect(kind, Response.NAME, data, text(path))
            except EOFError:
                return []
            return read_names(data)

        return self._send(Request.READDIR, handle, names)

    async def real_path(self, path: bytes) -> bytes:
        """A path without links."""

        def name(kind: int, data: memoryview) -> bytes:
            expect(kind, Response.NAME, data, text(path))
            found = read_names(data)
            if len(found) != 1:
                raise ProtocolError(f"{len(found)} names where one is expected")
            return found[0].name

        return await self._send(Request.REALPATH, string(path), name)

    def make_directory(self, path: bytes) -> asyncio.Future[None]:
        """Create a directory; what the server says if it exists is only that it failed."""
        return self._status(Request.MKDIR, string(path) + NO_ATTRIBUTES, path)

    def remove(self, path: bytes) -> asyncio.Future[None]:
        """Remove a file."""
        return self._status(Request.REMOVE, string(path), path)

    def rename(self, old: bytes, new: bytes) -> asyncio.Future[None]:
        """Rename a file; refused if the new name is taken."""
        return self._status(Request.RENAME, string(old) + string(new), new)

    async def replace(self, old: bytes, new: bytes) -> None:
        """Rename a file over another one, at once; only with the extension."""
        await self._extended(POSIX_RENAME, string(old) + string(new), new)

    async def link(self, old: bytes, new: bytes) -> None:
        """Give a file a second name; refused if that is taken. Only with the extension."""
        try:
            await self._extended(HARD_LINK, string(old) + string(new), new)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._reject_links(error)
            raise

    def _reject_links(self, error: OSError) -> None:
        if self.has(HARD_LINK):
            self.rejected[HARD_LINK] = str(error.strerror)
            event = "the SFTP server announces an extension that it does not support"
            effect = "it cannot create exclusively: commits are checked, written and read again"
            warn(event, extension=HARD_LINK, response=error.strerror, effect=effect)

    async def free_blocks(self, path: bytes) -> int | None:
        """Blocks that this user may still write at a path, or None if the server does not say."""
        if FREE_SPACE not in self.extensions:
            return None
        reply = await self._extended(FREE_SPACE, string(path), path)
        return int.from_bytes(reply[32:40], "big")  # f_bavail, the fifth field

    # Requests.

    def _send(self, kind: Request, body: bytes, parse: Callable[[int, memoryview], T]) -> asyncio.Future[T]:
        result: asyncio.Future[T] = self._loop.create_future()

        def handler(kind: int, data: memoryview) -> None:
            found = parse(kind, data)
            if not result.done():
                result.set_result(found)

        result.add_done_callback(seen)
        self.channel.request(kind, body, handler, result)
        return result

    def _status(self, kind: Request, body: bytes, path: bytes = b"") -> asyncio.Future[None]:
        def parse(kind: int, data: memoryview) -> None:
            _check_status(kind, data, text(path))

        return self._send(kind, body, parse)

    async def _handle(self, kind: Request, body: bytes, path: bytes) -> bytes:
        def parse(kind: int, data: memoryview) -> bytes:
            expect(kind, Response.HANDLE, data, text(path))
            return read_handle(data)

        reply = self._send(kind, body, parse)
        try:
            return await asyncio.shield(reply)
        except asyncio.CancelledError:  # the server opens it nevertheless
            reply.add_done_callback(self._close_unused)
            raise

    def _close_unused(self, reply: asyncio.Future[bytes]) -> None:
        if not reply.cancelled() and reply.exception() is None:
            self.close(reply.result())

    async def _extended(self, name: str, body: bytes, path: bytes = b"") -> bytes:
        def parse(kind: int, data: memoryview) -> bytes:
            if kind == Response.EXTENDED:
                return bytes(data)
            _check_status(kind, data, text(path))
            return b""

        return await self._send(Request.EXTENDED, string(name.encode()) + body, parse)


def text(path: bytes) -> str:
    """A path for messages and names: bytes that are not UTF-8 become half of surrogate pairs."""
    return path.decode("utf-8", "surrogateescape")


def _attributes(path: bytes) -> Callable[[int, memoryview], Attributes]:
    def parse(kind: int, data: memoryview) -> Attributes:
        expect(kind, Response.ATTRS, data, text(path))
        return read_attributes(data)[0]

    return parse


def _check_status(kind: int, data: memoryview, path: str) -> None:
    if kind != Response.STATUS:
        raise ProtocolError(f"the server responds with type {kind} where a status is expected")
    error: Any = read_status(data, path)
    if error is not None:
        raise error


def seen(result: asyncio.Future[Any]) -> None:
    """Mark a failure as seen: who waits for it gets it, and of some requests nobody waits."""
    if not result.cancelled():
        result.exception()
