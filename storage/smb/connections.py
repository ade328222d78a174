"""The connections of one store: opened when they are needed, replaced when they are lost, closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from podferry.storage.retries import pauses
from podferry.storage.smb.login import Share, connect
from podferry.storage.smb.nt_status import SESSION_ENDED, LoginRefused, NoFiles, ProtocolError, StatusError
from podferry.storage.smb.options import SmbOptions
from podferry.storage.timeouts_and_limits import Limits

T = TypeVar("T")
MAX_CONNECTIONS = 2
"""Each is a process at Samba, and more were no faster. Windows' desktop editions take twenty of all."""
CALLS_PER_CONNECTION = 4
"""On its way at the others before one more is opened: its login takes as long as some ten small files."""
FINAL = (StatusError, LoginRefused, NoFiles, ProtocolError)
"""What another attempt would not change, when a connection is opened."""


class Connections:
    """Sends each call over the connection with the least to do.

    Args:
        read_options: Where to connect to, and who logs in; called for each new connection.
        limits: Timeouts and retries.
    """

    def __init__(self, read_options: Callable[[], SmbOptions], limits: Limits) -> None:
        self._read_options, self._limits = read_options, limits
        self._shares: list[Share] = []
        self._opening: set[asyncio.Task[Share]] = set()
        self._max = MAX_CONNECTIONS

    async def run(self, work: Callable[[Share], Awaitable[T]], *, repeat: bool = True) -> T:
        """Do some work over a connection; again if it is lost, unless what it has done may not be repeated.

        Raises:
            StatusError, ConnectionLost, LoginRefused, NoFiles, OSError: After all attempts.
        """
        waits = pauses(self._limits.retries, self._limits.retry_seconds)
        while True:
            share = None
            try:
                share = await self._share()
                return await work(share)
            except FINAL as error:
                if share is None or not isinstance(error, StatusError) or error.status not in SESSION_ENDED:
                    raise
                share.connection.abort()
                pause = next(waits, None) if repeat else None
                if pause is None:
                    raise
            except (OSError, TimeoutError):
                pause = next(waits, None) if repeat or share is None else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _share(self) -> Share:
        best = self._best()
        if best is None:
            # One at a time: a wrong password counts towards the lock of the account.
            if not self._opening:
                self._open()
            opened = await asyncio.shield(next(iter(self._opening)))
            return self._best() or opened
        count = len(self._shares) + len(self._opening)
        if count < self._max and best.connection.calls >= CALLS_PER_CONNECTION:
            self._open()
        return best

    def _best(self) -> Share | None:
        self._shares = [share for share in self._shares if not share.connection.closed]
        return min(self._shares, key=lambda share: share.connection.calls, default=None)

    def _open(self) -> None:
        task = asyncio.create_task(self._opened())
        self._opening.add(task)
        task.add_done_callback(self._end_opening)

    async def _opened(self) -> Share:
        share = await connect(self._read_options(), self._limits)
        self._shares.append(share)
        return share

    def _end_opening(self, task: asyncio.Task[Share]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and task.exception() is not None and self._shares:
            self._max = len(self._shares)  # the server takes no more, and those that are open suffice

    async def close(self) -> None:
        """Close all connections."""
        self._max = 0
        for task in list(self._opening):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        shares, self._shares = self._shares, []
        for share in shares:
            share.connection.abort()
        await asyncio.sleep(0)  # a transport closes its socket one iteration of the loop later
