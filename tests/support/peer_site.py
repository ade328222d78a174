"""Several holders of one dataset in this process, which fetch from each other."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.peers.peers import Peers
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.rate_limit import RateLimit
from tests.support.holder_site import PREFETCH, holder_stage


class PeerSite:
    """Starts and ends holders `0`, `1`, … in directories of their own.

    Args:
        uri: Of the dataset.
        root: Where their directories are.
        count: How many there are to be.
        extra: URLs of further holders that they find.
        settings: How they fetch.
    """

    def __init__(
        self,
        uri: object,
        root: Path,
        count: int,
        extra: Sequence[str] = (),
        settings: PrefetchSettings = PREFETCH,
    ) -> None:
        self._settings = settings
        self.stages: dict[int, HolderStage] = {}
        self._reserved = {number: _bound() for number in range(count)}  # refuse requests until they listen
        self._ports = {number: one.getsockname()[1] for number, one in self._reserved.items()}
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports.values()]
        self._uri, self._root, self._extra = str(uri), root, extra
        self._running: dict[int, asyncio.Task[None]] = {}

    async def find(self) -> list[str]:
        """The URLs of all holders, also of those that do not run."""
        return [*self.urls, *self._extra]

    def start(self, number: int, expected: int | None = None, limit: RateLimit | None = None) -> HolderStage:
        """Start a holder."""
        others = len(self.urls) + len(self._extra) - 1 if expected is None else expected

        async def count() -> int:
            return others

        peers = Peers(self._uri, f"holder-{number}", self.find, count)
        root = self._root / str(number)
        stage = self.stages[number] = holder_stage(self._uri, root, peers, self._settings, limit)
        listener = self._reserved.pop(number, None) or _bound(self._ports[number])
        self._running[number] = asyncio.create_task(run_holder([stage], listener, f"node-{number}"))
        return stage

    async def stop(self, number: int) -> None:
        """End a holder; requests to it are refused from then on."""
        task = self._running.pop(number)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End all of them."""
        for number in tuple(self._running):
            await self.stop(number)
        for listener in self._reserved.values():
            listener.close()


def _bound(port: int = 0) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener
