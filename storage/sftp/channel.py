"""One SFTP channel: requests are sent without waiting for the responses to earlier ones.

Over a network with 20 ms to and fro, a client that waits for each response reads at most 50 of the messages a
second. What one iteration of the loop requests is sent as one packet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncssh

from podferry.storage.sftp.message_buffer import MessageBuffer
from podferry.storage.sftp.messages import (
    VERSION,
    ProtocolError,
    Request,
    Response,
    message,
    read_status,
)

Handler = Callable[[int, memoryview], None]
"""Called with the type of a response and what follows its number."""


class SftpChannel(asyncssh.SSHClientSession[bytes]):
    """The session of a channel whose subsystem is `sftp`.

    Attributes:
        version: What follows the version in the server's greeting: its extensions.
        pending: How many responses are awaited.
    """

    def __init__(self, stall_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.version: asyncio.Future[bytes] = self._loop.create_future()
        self._stall_seconds = stall_seconds
        self._handlers: dict[int, tuple[Handler, asyncio.Future[Any]]] = {}
        self._unsent: list[bytes] = []
        self._received = MessageBuffer()
        self._number = 0
        self._heard = self._loop.time()
        self._watch: asyncio.TimerHandle | None = None
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self.failure: Exception | None = None

    @property
    def pending(self) -> int:
        """How many responses are awaited."""
        return len(self._handlers)

    def request(self, kind: Request, body: bytes, handler: Handler, result: asyncio.Future[Any]) -> None:
        """Send a request.

        Args:
            kind: Its type.
            body: What follows the number.
            handler: Called with the response; what it raises becomes the failure of `result`.
            result: Fails if the channel does; the handler resolves it.
        """
        if self.failure is not None:
            if not result.done():
                result.set_exception(self.failure)
            return
        self._number = (self._number + 1) & 0xFFFFFFFF
        self._handlers[self._number] = handler, result
        self._send(message(kind, self._number, body))
        if self._watch is None:
            self._heard = self._loop.time()
            self._watch = self._loop.call_later(self._stall_seconds, self._check_stall)

    def _send(self, data: bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)

    def _flush(self) -> None:
        if self._channel is not None and self.failure is None:
            self._channel.write(b"".join(self._unsent))
        self._unsent.clear()

    def fail(self, error: Exception) -> None:
        """End the channel: what is awaited fails."""
        if self.failure is not None:
            return
        self.failure = error
        if self._watch is not None:
            self._watch.cancel()
        handlers, self._handlers = self._handlers, {}
        for result in (self.version, *(result for _, result in handlers.values())):
            if not result.done():
                result.set_exception(error)
        # Who has been cancelled does not read it.
        self.version.exception() if not self.version.cancelled() else None
        if self._channel is not None:
            self._channel.abort()

    def _check_stall(self) -> None:
        self._watch = None
        if not self._handlers:
            return
        silent = self._loop.time() - self._heard
        if silent < self._stall_seconds:
            self._watch = self._loop.call_later(self._stall_seconds - silent, self._check_stall)
            return
        self.fail(TimeoutError(f"no byte for {silent:.0f} s"))

    # Called by asyncssh.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """See `SSHClientSession`."""
        self._channel = chan

    def session_started(self) -> None:
        """See `SSHClientSession`."""
        self._send(message(Request.INIT, VERSION, b""))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """See `SSHClientSession`."""
        if datatype is not None or self.failure is not None:  # what the server's program prints as errors
            return
        self._heard = self._loop.time()
        try:
            for kind, payload in self._received.feed(data):
                self._handle(kind, payload)
        except ProtocolError as error:
            self.fail(error)

    def _handle(self, kind: int, data: memoryview) -> None:
        number = int.from_bytes(data[:4], "big")
        if kind == Response.VERSION:
            if not self.version.done():
                self.version.set_result(bytes(data[4:]))
            return
        found = self._handlers.pop(number, None)
        if found is None:
            raise ProtocolError(f"the server responds to a request that was not sent: {number}")
        handler, result = found
        try:
            handler(kind, data[4:])
        except Exception as error:  # noqa: BLE001 - the caller gets it
            if not result.done():
                result.set_exception(error)

    def eof_received(self) -> bool:
        """See `SSHClientSession`."""
        self.fail(ConnectionResetError("the server has closed the channel"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See `SSHClientSession`."""
        self.fail(exc or ConnectionResetError("the server has closed the channel"))


def expect(kind: int, wanted: Response, data: memoryview, path: str) -> None:
    """Raise what a STATUS reports; `ProtocolError` for any other type than the wanted one."""
    if kind == wanted:
        return
    if kind != Response.STATUS:
        raise ProtocolError(f"the server responds with type {kind} where {wanted.name} is expected")
    error = read_status(data, path)
    raise error if error is not None else ProtocolError(f"success without {wanted.name}")
