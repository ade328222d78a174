"""Waits on the event loop for sockets that each become readable many times.

For uvloop, each wait for a socket is a new registration: six system calls. Here the loop
watches one `epoll` object, which watches all sockets.
"""

from __future__ import annotations

import asyncio
import select
import socket

IS_SUPPORTED = hasattr(select, "epoll")
"""Whether this is Linux."""


class Readiness:
    """Of some sockets that do not block. Call it from one event loop only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._waiters: dict[int, asyncio.Future[None]] = {}
        self._loop.add_reader(self._epoll.fileno(), self._wake)

    def add(self, watched: socket.socket) -> None:
        """Watch a socket, until it is closed; one that is watched already remains so."""
        try:
            self._epoll.register(watched, select.EPOLLIN | select.EPOLLET)
        except FileExistsError:
            return

    async def receive_into(self, watched: socket.socket, buffer: memoryview) -> int:
        """Wait for bytes of a socket: how many there were, 0 at its end. Raises `OSError`."""
        while True:
            try:
                return watched.recv_into(buffer)
            except BlockingIOError:  # what arrives after this is an event
                number = watched.fileno()
                self._waiters[number] = waiter = self._loop.create_future()
                try:
                    await waiter
                finally:
                    self._waiters.pop(number, None)

    def _wake(self) -> None:
        for number, _ in self._epoll.poll(0):
            waiter = self._waiters.get(number)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Watch nothing more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
