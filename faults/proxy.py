"""Stands before the object store and harms what passes. Runs in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from faults.lies import ANSWERS, REQUESTS
from faults.messages import Head, answer, body, read_head
from faults.plan import Fault
from faults.rules import STATUS, Rules
from faults.wire import Seen, Watch

UPWARDS = frozenset({"reset in a request", "truncated request", "flipped request", "overwrite in place"})
DOWNWARDS = frozenset({"reset in an answer", "truncated answer", "flipped answer"})
"""Which way the harm goes."""
LONGEST_HOLD = 6.0
"""Seconds for which a body is held until its file has been overwritten."""
REFUSED = 0.5
"""Place in a body from which on an overwritten file is asked for once more, rather than read to its end."""
GLANCE = 0.05
"""Seconds between two looks meanwhile."""


class _Cut(Exception):
    """This connection ends here."""


class Proxy:
    """Forwards to one port of this machine.

    Args:
        port: The store's.
        rules: What to harm.
        saves: How many saves the trainer has finished, for overwrites in place.
        watch: Is shown each request, what of its body has come, and that it was answered.
    """

    def __init__(self, port: int, rules: Rules, saves: Callable[[], int], watch: Watch = Seen) -> None:
        self._port, self._rules, self._saves, self._watch = port, rules, saves, watch
        self._road = asyncio.Lock()
        self._served: set[asyncio.Task[None] | None] = set()

    async def serve(self, listener: socket.socket) -> None:
        """Forward until cancelled."""
        server = await asyncio.start_server(self._connected, sock=listener, limit=1 << 20)
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        # A loop holds its tasks weakly: one that waits for two ends which are both paused would vanish.
        self._served.add(asyncio.current_task())
        # Either end may go at any time: clients are killed here.
        try:
            store, upstream = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
            exchange = _Exchange(reader, writer, store, upstream)
            while await self._exchange(exchange):
                pass
        except (OSError, _Cut, asyncio.IncompleteReadError, ValueError):
            pass
        except asyncio.CancelledError:
            pass  # the proxy ends, and Python 3.11 would print each connection as an error of a callback
        finally:
            for end in filter(None, (writer, upstream)):
                end.close()
            self._served.discard(asyncio.current_task())

    async def _exchange(self, on: _Exchange) -> bool:
        """One request and its answer; whether there may be another."""
        request = await read_head(on.reader)
        if request is None:
            return False
        seen = self._watch(request)
        fault = self._rules.hit(request, time.monotonic())
        if fault is not None and fault.kind in STATUS:
            async for _ in self._paced(request, on.reader):
                pass
            on.writer.write(answer(*STATUS[fault.kind], request.method))
            await on.writer.drain()
            return True
        if fault is not None and fault.kind == "overwrite in place" and fault.part >= REFUSED:
            return await self._refused(on, request)
        await self._upwards(on, request, fault, seen)
        await self._downwards(on, request, fault, seen)
        return True

    async def _refused(self, on: _Exchange, request: Head) -> bool:
        """Swallow a body, and let the client read its file once more when it has been overwritten."""
        async for _ in self._paced(request, on.reader):
            pass
        await self._overwritten()
        on.writer.write(answer(*STATUS["503"], request.method))
        await on.writer.drain()
        return True

    async def _overwritten(self) -> None:
        """Wait until the trainer has finished one more save."""
        before, deadline = self._saves(), time.monotonic() + LONGEST_HOLD
        while self._saves() == before and time.monotonic() < deadline:  # noqa: ASYNC110 - a file shows it
            await asyncio.sleep(GLANCE)

    async def _upwards(self, on: _Exchange, request: Head, fault: Fault | None, seen: Seen) -> None:
        if fault is not None and fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
        lie = REQUESTS.get(fault.kind) if fault is not None else None
        on.upstream.write((lie(request) if lie else request).raw)
        harmed = fault if fault is not None and fault.kind in UPWARDS else None
        pieces = self._shown(self._paced(request, on.reader), seen)
        await self._pass(on.upstream, pieces, harmed, request.length or 0, on)

    @staticmethod
    async def _shown(pieces: AsyncGenerator[bytes], seen: Seen) -> AsyncGenerator[bytes]:
        async with aclosing(pieces):
            async for piece in pieces:
                seen.passed(len(piece))
                yield piece

    async def _downwards(self, on: _Exchange, request: Head, fault: Fault | None, seen: Seen) -> None:
        head = await read_head(on.store)
        while head is not None and head.first[1] == "100":
            on.writer.write(head.raw)
            head = await read_head(on.store)
        if head is None:
            raise _Cut
        seen.answered(head)
        empty = head.bodiless(request.method) or head.length == 0
        if fault is not None and (fault.kind == "lost answer" or (empty and fault.kind in DOWNWARDS)):
            on.reset()  # of an answer without a body nothing else can be harmed
        lie = ANSWERS.get(fault.kind) if fault is not None and head.length else None
        sent = lie(head) if lie else head
        on.writer.write(sent.raw)
        if empty:
            await on.writer.drain()
            return
        harmed = fault if fault is not None and fault.kind in DOWNWARDS else None
        if harmed is not None and not head.first[1].startswith("20"):
            harmed = None
        await self._pass(on.writer, self._paced(head, on.store), harmed, head.length or 0, on)
        if (sent.length or 0) > (head.length or 0):
            raise _Cut

    async def _pass(
        self,
        writer: asyncio.StreamWriter,
        pieces: AsyncGenerator[bytes],
        fault: Fault | None,
        length: int,
        on: _Exchange,
    ) -> None:
        """Pass a body on, harmed from a chosen byte on."""
        place, passed = int((fault.part if fault else 0) * max(length - 1, 0)), 0
        async with aclosing(pieces):
            async for piece in pieces:
                if fault is not None and passed <= place < passed + len(piece):
                    piece = await self._harm(writer, piece, place - passed, fault, on)  # noqa: PLW2901
                passed += len(piece)
                writer.write(piece)
                await writer.drain()
        await writer.drain()

    async def _harm(
        self, writer: asyncio.StreamWriter, piece: bytes, at: int, fault: Fault, on: _Exchange
    ) -> bytes:
        if fault.kind.startswith("flipped"):
            bit = 1 << int(fault.part * 1000) % 8
            return piece[:at] + bytes([piece[at] ^ bit]) + piece[at + 1 :]
        if fault.kind == "overwrite in place":
            await self._overwritten()
            return piece
        writer.write(piece[:at])
        with contextlib.suppress(OSError):
            await writer.drain()
        if fault.kind.startswith("reset"):
            on.reset()
        raise _Cut

    async def _paced(self, head: Head, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        """A body at the rate at which all bodies pass together."""
        async with aclosing(body(reader, head.length)) as pieces:
            async for piece in pieces:
                async with self._road:
                    await asyncio.sleep(len(piece) / self._rules.rate)
                yield piece


class _Exchange:
    """The two connections of one client."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        store: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        self.reader, self.writer, self.store, self.upstream = reader, writer, store, upstream

    def reset(self) -> None:
        """End the client's connection as a crash does: RST, no FIN.

        Raises:
            _Cut: Always.
        """
        # Source: socket(7): SO_LINGER with a time of 0.
        end = self.writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        raise _Cut


@contextmanager
def proxy(port: int, rules: Rules, saves: Callable[[], int], watch: Watch = Seen) -> Iterator[str]:
    """A proxy before a port of this machine; its URL."""
    loop = asyncio.new_event_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        tasks: list[asyncio.Task[None]] = []

        def serve() -> None:
            asyncio.set_event_loop(loop)
            tasks.append(loop.create_task(Proxy(port, rules, saves, watch).serve(listener)))
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(tasks[0])
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.close()

        thread = threading.Thread(target=serve, name="proxy")
        thread.start()
        try:
            yield url
        finally:
            loop.call_soon_threadsafe(tasks[0].cancel)
            thread.join()
