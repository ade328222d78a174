"""The other holders of a dataset: found, asked for their news again and again, given up when they fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from podferry.cache.peers.news_client import NEWS_SECONDS, NewsClient
from podferry.cache.peers.shares import PeerView
from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import Asker, Progress
from podferry.contract.errors import FerryError
from podferry.contract.file_part import FilePart

log = structlog.get_logger(__name__)
START_SECONDS = 5.0
"""For the others to start and list before the first file is claimed: as pods of one StatefulSet do."""
FIND_SECONDS = 1.0
"""Between two looks for further holders."""
RETRY_SECONDS = 0.5
FIRST = "", 0, 0.0
"""The first request: what a holder has, at once."""
DEAD_SECONDS = 3.0
"""Without an answer, until the files of a holder are fetched by the others."""
STALL_SECONDS = 20.0
"""Without progress of the holders that one waits for; a store's own retries take about as long."""
MAX_PEERS = 1000
"""Who asks may give any name: further ones are not remembered."""

CountHolders = Callable[[], Awaitable[int]]
FindHolders = Callable[[], Awaitable[Sequence[str]]]
"""The URLs of all holders; this one may be among them."""


class Peer(msgspec.Struct):
    """Another holder.

    Attributes:
        view: What it has said.
        url: Where it answers; empty if it has asked, but was not found yet.
        log, since: Where its next news start.
        bytes_done: What it had fetched.
        changed_at: When it was last seen to make progress; seconds of a monotonic clock.
        failing_since: When it stopped to answer; None while it does.
        asked_at: When it last asked this one.
        given_up: Whether it has stalled: nothing is expected of it until it makes progress again.
    """

    view: PeerView
    changed_at: float
    url: str = ""
    log: str = ""
    since: int = 0
    bytes_done: int = 0
    failing_since: float | None = None
    asked_at: float = 0.0
    given_up: bool = False


class Peers:
    """The other holders of one dataset.

    Args:
        uri: Of the dataset.
        name: This holder's.
        find: Finds the holders.
        count: How many others there should be.
        token: For requests to them.
        now: A monotonic clock in seconds.
    """

    def __init__(
        self,
        uri: str,
        name: str,
        find: FindHolders,
        count: CountHolders,
        token: Path | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.uri, self.name = uri, name
        self.find, self.count, self.token, self._now = find, count, token, now
        self._peers: dict[str, Peer] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._parts: dict[FilePart, FilePart] = {}  # what all others say of one part takes memory once
        self._changed = asyncio.Event()
        self.version = 0

    @asynccontextmanager
    async def watched(self, digest: str) -> AsyncIterator[None]:
        """Ask the others for their news meanwhile; `digest` is that of this holder's manifest."""
        client = NewsClient(self.uri, Asker(self.name, digest), self.token)
        finding = asyncio.create_task(self._find_all(client))
        try:
            await self._wait_for_first_answers()
            yield
        finally:
            tasks = [finding, *self._watches.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._watches.clear()
            self._peers.clear()
            self._parts.clear()
            await client.close()

    def live(self, waiting_since: float | None = None) -> list[Peer]:
        """The others that respond. Those without progress for too long since `waiting_since` are given up."""
        now = self._now()
        if waiting_since is not None:
            for peer in self._peers.values():
                if now - max(peer.changed_at, waiting_since) > STALL_SECONDS and not peer.given_up:
                    log.info("another holder has stalled", holder=peer.view.name, url=peer.url)
                    peer.given_up = True
        return [peer for peer in self._peers.values() if self._is_live(peer, now)]

    def _is_live(self, peer: Peer, now: float) -> bool:
        is_dead = peer.failing_since is not None and now - peer.failing_since > DEAD_SECONDS
        is_gone = not peer.url and now - peer.asked_at > 2 * NEWS_SECONDS
        return not (peer.given_up or is_dead or is_gone)

    def peer(self, name: str) -> Peer:
        """Another holder, by its name."""
        return self._peers[name]

    def announce(self, asker: Asker) -> None:
        """Another holder has asked this one: it takes part from now on."""
        is_known = asker.holder in self._peers or len(self._peers) < MAX_PEERS
        if asker.holder != self.name and is_known:
            peer = self._peer(asker.holder)
            peer.asked_at = self._now()
            if asker.digest != peer.view.digest:
                peer.view.digest = asker.digest
                self._has_changed()

    async def changed(self, seconds: float) -> None:
        """Wait for news, or for this long."""
        await wait_for(self._changed, seconds)

    def _has_changed(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _peer(self, name: str) -> Peer:
        return self._peers.setdefault(name, Peer(PeerView(name), self._now()))

    async def _wait_for_first_answers(self) -> None:
        until, expected = self._now() + START_SECONDS, await self._expected()
        while (rest := until - self._now()) > 0:
            if sum(bool(peer.url and peer.view.digest) for peer in self._peers.values()) >= expected:
                return
            await self.changed(rest)

    async def _expected(self) -> int:
        try:
            return await self.count()
        except FerryError as error:
            log.warning("the number of holders is unknown", reason=str(error))
            return 0

    async def _find_all(self, client: NewsClient) -> None:
        """Watch each holder that is found; one that is no longer found is watched no more."""
        while True:
            try:
                found = set(await self.find())
            except FerryError as error:
                log.warning("the other holders cannot be found", reason=str(error))
            else:
                for url in self._watches.keys() - found:
                    self._watches.pop(url).cancel()
                for url in found - self._watches.keys():
                    self._watches[url] = asyncio.create_task(self._watch(client, url))
            await asyncio.sleep(FIND_SECONDS)

    async def _watch(self, client: NewsClient, url: str) -> None:
        at: Peer | None = None
        while True:
            try:
                answer = await client.news(url, *((at.log, at.since) if at else FIRST))
            except FerryError as error:
                self._failed(url, at, str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if answer.holder == self.name:
                return
            at = self._heard(url, answer)

    def _failed(self, url: str, peer: Peer | None, reason: str) -> None:
        if peer is not None and peer.url == url and peer.failing_since is None:
            log.info("another holder does not respond", holder=peer.view.name, url=url, reason=reason)
            peer.failing_since = self._now()

    def _heard(self, url: str, answer: Progress) -> Peer:
        peer = self._peer(answer.holder)
        if peer.log != answer.log:
            peer.view.claimed.clear()
            peer.view.held.clear()
        seen = peer.url, peer.log, peer.since, peer.view.digest
        for news in answer.news:
            part = self._parts.setdefault(news.part, news.part)
            if news.checksum is None:
                peer.view.claimed.add(part)
            else:
                peer.view.held[part] = news.checksum
        if (peer.log, peer.since, peer.bytes_done) != (answer.log, answer.end, answer.bytes_done):
            peer.changed_at, peer.given_up = self._now(), False
        peer.url, peer.log, peer.since, peer.bytes_done = url, answer.log, answer.end, answer.bytes_done
        peer.view.digest, peer.failing_since = answer.digest, None
        if seen != (peer.url, peer.log, peer.since, peer.view.digest):
            self._has_changed()
        return peer
