"""One connection to a server: many requests on their way at once, each related chain sent as one message.

A response is matched by its number, whenever it arrives. What a server lets a client have on its way is
counted in credits: each request costs some, each response grants some.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

from podferry.storage.smb.frames import LENGTH, FrameBuffer, chained
from podferry.storage.smb.messages import (
    HEADER,
    IS_ASYNC,
    IS_RELATED,
    IS_RESPONSE,
    IS_SIGNED,
    MAGIC,
    Request,
    Response,
)
from podferry.storage.smb.nt_status import (
    PENDING,
    SESSION_ENDED,
    ClosedByServer,
    ConnectionLost,
    ProtocolError,
)
from podferry.storage.smb.signing import TRANSFORM_MAGIC, Cipher, Signer

CREDITS = 512
"""Requested with each message until there are as many: two requests of 8 MiB and some small ones."""


class _Call:
    """Requests that were sent as one message, and their responses."""

    __slots__ = ("done", "missing", "responses")

    def __init__(self, done: asyncio.Future[list[Response]], count: int) -> None:
        self.done, self.missing = done, count
        self.responses: list[Response | None] = [None] * count


class Connection(asyncio.BufferedProtocol):
    """Sends requests and receives responses.

    Attributes:
        signer, cipher: Of the session, once there is one.
        session, tree: What requests are sent for.
        large_requests: Whether a request may cost several credits.
        calls: On their way.
        closed: Whether it can no longer be used.
        is_recorded: Whether to keep the last messages, which the login's hash covers.
    """

    def __init__(self, stall_seconds: float) -> None:
        self.signer: Signer | None = None
        self.cipher: Cipher | None = None
        self.session = self.tree = self.calls = 0
        self.large_requests = self.closed = False
        self.is_recorded, self.last_sent, self.last_received = True, b"", b""
        self._stall_seconds = stall_seconds
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._frames = FrameBuffer()
        self._next_message, self._credits, self._total = 0, 1, 1
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._pending: dict[int, tuple[_Call, int, int]] = {}
        self._active = self._loop.time()
        self._watch: asyncio.TimerHandle | None = None
        self._unsent = 0

    # Requests.

    async def call(self, *requests: Request) -> list[Response]:
        """Send requests, each for the file that the one before has opened, and wait for all responses.

        Raises:
            ConnectionLost: Before all had arrived.
        """
        charges = [request.charge if self.large_requests else 1 for request in requests]
        self.calls += 1
        try:
            await self._acquire(sum(charges))
            call = _Call(self._loop.create_future(), len(requests))
            self._send(requests, charges, call)
            return await call.done
        finally:
            self.calls -= 1

    def reuse(self, response: Response) -> None:
        """Receive another response where this one is, which nothing reads any more."""
        self._frames.reuse(response.data)

    @property
    def max_payload(self) -> int:
        """Bytes that one request may ask for, so that another one can be on its way."""
        return max(1, self._total // 2) * 65536 if self.large_requests else 65536

    async def _acquire(self, charge: int) -> None:
        """Take credits, in the order of the calls."""
        if self.closed:
            raise ConnectionLost("the connection is closed")
        if self._credits < charge or self._waiting:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((charge, turn))
            self._check_credits()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled() and turn.exception() is None:
                    self._credits += charge
                    self._check_credits()
                raise
        else:
            self._credits -= charge

    def _check_credits(self) -> None:
        """Let calls continue for which there are credits now."""
        while self._waiting and self._waiting[0][0] <= self._credits:
            charge, turn = self._waiting.popleft()
            if not turn.done():
                self._credits -= charge
                turn.set_result(None)
        if self._waiting and not self._pending and (needed := self._waiting[0][0]) > self._credits:
            self.abort(ProtocolError(f"the server grants {self._credits} credits, {needed} are needed"))

    def _send(self, requests: tuple[Request, ...], charges: list[int], call: _Call) -> None:
        message = bytearray()
        wanted = max(0, CREDITS - self._total)
        flags = IS_SIGNED if self.signer is not None and self.cipher is None else 0
        for index, (request, charge) in enumerate(zip(requests, charges, strict=True)):
            last = index == len(requests) - 1
            padding = b"" if last else bytes(-(HEADER.size + len(request.body)) % 8)
            size = HEADER.size + len(request.body) + len(padding)
            asked, kind = charge + (wanted if last else 0), flags | (IS_RELATED if index else 0)
            cost = charge if self.large_requests else 0
            numbers = (0 if last else size, self._next_message, 0, self.tree, self.session)
            part = bytearray(HEADER.pack(MAGIC, 64, cost, 0, request.command, asked, kind, *numbers, b""))
            part += request.body
            part += padding
            if self.signer is not None and self.cipher is None:
                self.signer.sign(part)
            if not self._pending:
                self._active = self._loop.time()
            self._pending[self._next_message] = (call, index, charge)
            self._next_message += charge
            message = part if len(requests) == 1 else message + part
        self._write(message)

    def _write(self, message: bytearray) -> None:
        if self.is_recorded:
            self.last_sent = bytes(message)
        sent: bytes | bytearray = self.cipher.encrypt(message) if self.cipher is not None else message
        if not self._watch:
            self._watch = self._loop.call_later(self._stall_seconds, self._check_stall)
        self._transport.writelines((len(sent).to_bytes(LENGTH, "big"), sent))

    # Responses.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`."""
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._active = self._loop.time()
        try:
            for frame in self._frames.arrived(nbytes):
                self._receive(frame)
        except ConnectionLost as error:
            self.abort(error)

    def _receive(self, frame: memoryview) -> None:
        encrypted = frame[:4] == TRANSFORM_MAGIC
        if encrypted:
            if self.cipher is None:
                raise ProtocolError("an encrypted response without a session")
            frame = memoryview(self.cipher.decrypt(frame))
        elif self.cipher is not None:
            raise ProtocolError("a response is not encrypted")
        for response in chained(frame):
            self._receive_one(response, encrypted=encrypted)
        self._check_credits()

    def _receive_one(self, data: memoryview, *, encrypted: bool) -> None:
        _, _, _, status, _, granted, flags, _, message, _, _, session, _ = HEADER.unpack_from(data)
        found = self._pending.get(message)
        if not flags & IS_RESPONSE or found is None:
            return  # such as a notification that nobody asked for
        self._credits += granted
        self._total += granted
        if flags & IS_ASYNC and status == PENDING:
            return
        if self.signer is not None and not encrypted and status not in SESSION_ENDED:
            if not flags & IS_SIGNED:
                raise ProtocolError("a response is not signed")
            self.signer.check(data)
        call, index, charge = self._pending.pop(message)
        self._total -= charge
        if self.is_recorded:
            self.session = session or self.session
            self.last_received = bytes(data)
        call.responses[index] = Response(status, data)
        call.missing -= 1
        if not call.missing and not call.done.done():
            call.done.set_result(cast("list[Response]", call.responses))

    def _check_stall(self) -> None:
        """Give the connection up if a response is missing, nothing arrives and nothing is sent."""
        self._watch = None
        if self._pending:
            unsent = self._transport.get_write_buffer_size()
            if unsent < self._unsent:
                self._active = self._loop.time()
            self._unsent = unsent
            idle = self._loop.time() - self._active
            if idle >= self._stall_seconds:
                self.abort(ConnectionLost(f"no response for {idle:.0f} s"))
            else:
                self._watch = self._loop.call_later(self._stall_seconds - idle, self._check_stall)

    # Its end.

    def abort(self, error: ConnectionLost | None = None) -> None:
        """Close at once; calls that are on their way fail with this error."""
        self.closed = True
        self._transport.abort()
        self._fail(error or ConnectionLost("the connection was closed"))

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self.closed = True
        self._fail(ClosedByServer(str(exc) if exc else "the server has closed the connection"))

    def _fail(self, error: ConnectionLost) -> None:
        if self._watch:
            self._watch.cancel()
        pending, self._pending = self._pending, {}
        waiting, self._waiting = self._waiting, deque()
        for call, _, _ in pending.values():
            if not call.done.done():
                call.done.set_exception(error)
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(error)
