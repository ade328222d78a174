"""Fetches a dataset together with other holders: each file crosses the network from the source once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from podferry.cache.peers.file_log import FileLog
from podferry.cache.peers.peer_store import peer_source
from podferry.cache.peers.peers import Peers
from podferry.cache.peers.shares import Claim, Take, next_step, step_bytes
from podferry.contract.cache_api import Holder
from podferry.contract.manifest import Entry
from podferry.sidecar.dataset.dataset_job import PlannedDataset
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.holder.client import HolderClient

CHECK_SECONDS = 1.0
"""Between two looks whether the others still make progress."""

ChecksumFiles = Callable[[Sequence[str]], Mapping[str, int]]
"""The CRC-64/NVME of files in the stage, by name. Blocks."""


class SharedFill:
    """Fills one stage.

    Args:
        planned: The dataset; its stage is claimed.
        log: Where the others read what this holder has.
        peers: The others.
        checksum_files: Reads files in the stage.
        now: A monotonic clock in seconds.
    """

    def __init__(
        self,
        planned: PlannedDataset,
        log: FileLog,
        peers: Peers,
        checksum_files: ChecksumFiles,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planned, self._log, self._peers = planned, log, peers
        self._checksum_files, self._now = checksum_files, now
        self._missing = {entry.name: entry for entry in planned.sized.plan.files}
        self._max_bytes = step_bytes(log.manifest.bytes)
        self._waiting_since: float | None = None

    async def run(self) -> None:
        """Fetch everything.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Fetcher.run`.
        """
        publishing = [asyncio.create_task(self._publish(self._planned.sized.plan.kept))]
        try:
            async with self._planned.job.progress.reporting(), self._peers.watched(self._log.manifest.digest):
                while self._missing:
                    publishing += await self._step()
            await asyncio.gather(*publishing)
        finally:
            for task in publishing:
                task.cancel()

    async def _step(self) -> list[asyncio.Task[None]]:
        version = self._peers.version
        views = [peer.view for peer in self._peers.live(self._waiting_since)]
        missing, digest = tuple(self._missing.values()), self._log.manifest.digest
        match next_step(missing, self._peers.name, digest, views, self._max_bytes):
            case Claim(entries):
                self._log.claim(entries)
                await self._fetch(entries, self._planned.source)
            case Take(peer, entries):
                await self._take(peer, entries)
            case None:
                await self._wait(version, len(views))
                return []
        self._waiting_since = None
        for entry in entries:
            del self._missing[entry.name]
        return [asyncio.create_task(self._publish(entries))]

    async def _wait(self, version: int, live: int) -> None:
        """Wait until the others are not what they were: news, or other holders that respond."""
        if self._waiting_since is None:
            self._waiting_since = self._now()
        while version == self._peers.version and live == len(self._peers.live(self._waiting_since)):
            await self._peers.changed(CHECK_SECONDS)

    async def _take(self, peer: str, entries: Sequence[Entry]) -> None:
        found = self._peers.peer(peer)
        held = {entry: found.view.held[entry] for entry in entries}
        client = HolderClient(Holder(found.url, self._peers.token))
        try:
            await self._fetch(entries, peer_source(self._planned.source, client, found.view.digest, held))
        finally:
            await client.close()

    async def _fetch(self, entries: Sequence[Entry], source: FetchSource) -> None:
        job = self._planned.job
        part = msgspec.structs.replace(self._log.manifest, entries=tuple(entries))
        job.staging.partial_dir.mkdir(exist_ok=True)  # the end of the last step has removed it
        counters = job.progress.counters
        plan = plan_fetch(part, frozenset(), job.settings)
        await Fetcher(plan, source, job.staging, job.settings, counters=counters).run()

    async def _publish(self, entries: Iterable[Entry]) -> None:
        names = [entry.name for entry in entries]
        if names:
            self._log.hold(await asyncio.to_thread(self._checksum_files, names))
