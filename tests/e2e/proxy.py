"""A TCP proxy that holds chosen HTTP requests back and slows all bytes down: `proxy.py HOST PORT RULES`.

It listens at HOST on a port of its own, prints it, and forwards to HOST:PORT. On another port that it prints,
it responds with the bytes that each client has got so far: {"ADDRESS": BYTES}. RULES is a file that it reads
repeatedly: {"hold": ["PUT /bucket/*"], "rate": 4000000}, globs on request lines and bytes a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

CHUNK = 64 * 1024
POLL_SECONDS = 0.05
"""Seconds between two reads of the rules while a request is held."""


class Proxy:
    def __init__(self, host: str, port: int, rules: Path) -> None:
        self._host, self._port, self._rules = host, port, rules
        self._byte_lock = asyncio.Lock()
        self._sent: Counter[str] = Counter()

    def rules(self) -> Any:
        return json.loads(self._rules.read_text())

    async def serve(self) -> None:
        counts = await asyncio.start_server(self._count, self._host, 0)
        print("counts", counts.sockets[0].getsockname()[1], flush=True)
        server = await asyncio.start_server(self._connected, self._host, 0)
        print("port", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Either end may go at any time: clients are killed here.
        with contextlib.suppress(OSError):
            their_reader, their_writer = await asyncio.open_connection(self._host, self._port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, their_writer))
                group.create_task(self._pump(their_reader, writer, writer.get_extra_info("peername")[0]))

    async def _count(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(self._sent).encode())
        writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str = ""
    ) -> None:
        """Forward, and count what a client gets."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._wait_while_held(data)
                await self._throttle(len(data))
                if client:
                    self._sent[client] += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _wait_while_held(self, data: bytes) -> None:
        """Wait while the request that begins here is held. Clients send a head in one piece."""
        line, reported = data.partition(b"\r\n")[0].decode(errors="replace"), False
        while any(fnmatchcase(line, glob) for glob in self.rules()["hold"]):
            if not reported:
                print("held", line, flush=True)
            reported = True
            await asyncio.sleep(POLL_SECONDS)

    async def _throttle(self, count: int) -> None:
        """Let bytes of all connections pass one after the other."""
        rate = self.rules()["rate"]
        if rate:
            async with self._byte_lock:
                await asyncio.sleep(count / rate)


if __name__ == "__main__":
    asyncio.run(Proxy(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])).serve())
