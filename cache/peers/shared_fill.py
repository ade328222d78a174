"""Fetches a dataset together with other holders: each part of it crosses the network from the source once.

Parts of a large file are written to a partial file, from which the others take them. When all are there, one
more run of the fetcher compares the file with its store's checksum, and publishes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from podferry.cache.peers.file_log import FileLog
from podferry.cache.peers.peer_store import peer_source
from podferry.cache.peers.peers import Peers
from podferry.cache.peers.shares import Claim, Take, next_step, step_bytes
from podferry.cache.peers.staged_parts import part_checksum, written_parts
from podferry.contract.cache_api import Holder
from podferry.contract.file_part import FilePart, parts_of
from podferry.contract.manifest import Entry
from podferry.sidecar.dataset.dataset_job import PlannedDataset
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import PartialFile
from podferry.sidecar.fetch.plan import plan_parts
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.holder.client import HolderClient

CHECK_SECONDS = 1.0
"""Between two looks whether the others still make progress."""

ChecksumFiles = Callable[[Sequence[str]], Mapping[str, int]]
"""The CRC-64/NVME of files in the stage, by name. Blocks."""
Checksums = dict[FilePart, int]


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
        self._stage = planned.job.staging
        self._range_bytes = planned.job.settings.range_bytes
        self._checksum_files, self._now = checksum_files, now
        missing = [part for entry in planned.sized.plan.files for part in parts_of(entry)]
        self._missing = dict.fromkeys(missing)
        self._left = {part.entry: len(parts_of(part.entry)) for part in missing}
        self._max_bytes = step_bytes(log.manifest.bytes)
        self._waiting_since: float | None = None
        self._computed = self._stage.checksums = dict[str, int]()

    async def run(self) -> None:
        """Fetch everything.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Fetcher.run`.
        """
        kept = [part for entry in self._planned.sized.plan.kept for part in parts_of(entry)]
        publishing = [asyncio.create_task(self._publish(kept))]
        try:
            async with self._planned.job.progress.reporting(), self._peers.watched(self._log.manifest.digest):
                publishing += await self._done(self._written())
                while self._missing:
                    publishing += await self._step()
            await asyncio.gather(*publishing)
        finally:
            for task in publishing:
                task.cancel()
        self._stage.remove_partials()

    def _written(self) -> list[FilePart]:
        """The parts of large files that an earlier start wrote."""
        size, large = (
            self._planned.job.settings.range_bytes,
            [entry for entry, n in self._left.items() if n > 1],
        )
        return [part for entry in large for part in written_parts(self._stage, entry, size)]

    async def _step(self) -> list[asyncio.Task[None]]:
        version = self._peers.version
        views = [peer.view for peer in self._peers.live(self._waiting_since)]
        missing, digest = tuple(self._missing), self._log.manifest.digest
        match next_step(missing, self._peers.name, digest, views, self._max_bytes):
            case Claim(parts):
                await self._claim(parts)
            case Take(peer, parts):
                await self._take(peer, parts)
            case None:
                await self._wait(version, len(views))
                return []
        self._waiting_since = None
        return await self._done(parts)

    async def _wait(self, version: int, live: int) -> None:
        """Wait until the others are not what they were: news, or other holders that respond."""
        if self._waiting_since is None:
            self._waiting_since = self._now()
        while version == self._peers.version and live == len(self._peers.live(self._waiting_since)):
            await self._peers.changed(CHECK_SECONDS)

    async def _claim(self, parts: Sequence[FilePart]) -> None:
        self._log.claim(parts)
        limit, digest = self._planned.job.limit, self._log.manifest.digest
        if limit is not None:
            limit.sharers = 1 + sum(peer.view.digest == digest for peer in self._peers.live())
        await self._fetch(parts, self._planned.source)

    async def _take(self, peer: str, parts: Sequence[FilePart]) -> None:
        found = self._peers.peer(peer)
        held = {part: found.view.held[part] for part in parts}
        files = {part.entry: checksum for part, checksum in held.items() if part.is_whole}
        client = HolderClient(Holder(found.url, self._peers.token))
        try:
            await self._fetch(parts, peer_source(self._planned.source, client, found.view.digest, files))
        finally:
            await client.close()
        await self._verify({part: checksum for part, checksum in held.items() if not part.is_whole})

    async def _verify(self, taken: Checksums) -> None:
        """Compare parts of large files with what the other holder has of them; fetch those that differ."""
        found = await asyncio.to_thread(self._checksum_parts, taken)
        wrong = [part for part, checksum in found.items() if checksum != taken[part]]
        for part in wrong:
            PartialFile(self._stage, part.entry, self._range_bytes).forget(part.start, part.length)
        if wrong:
            await self._claim(wrong)

    async def _fetch(self, parts: Sequence[FilePart], source: FetchSource) -> Fetcher:
        job = self._planned.job
        self._stage.partial_dir.mkdir(exist_ok=True)
        counters = job.progress.counters
        plan = plan_parts(parts, job.settings)
        fetcher = Fetcher(plan, source, self._stage, job.settings, counters=counters, keep_partials=True)
        await fetcher.run()
        return fetcher

    async def _done(self, parts: Sequence[FilePart]) -> list[asyncio.Task[None]]:
        """These parts are there: publish the files that are complete with them, and let the others know."""
        complete: list[Entry] = []
        for part in parts:
            del self._missing[part]
            self._left[part.entry] -= 1
            if not self._left[part.entry] and not part.is_whole:
                complete.append(part.entry)
        again = await self._publish_files(complete) if complete else []
        return [asyncio.create_task(self._publish([*parts, *again]))]

    async def _publish_files(self, entries: Sequence[Entry]) -> list[FilePart]:
        """Verify large files, and give them their names; the parts of those that had to be repaired."""
        whole = [FilePart(entry, 0, entry.size) for entry in entries]
        fetcher = await self._fetch(whole, self._planned.source)
        return [part for entry in entries if entry.name in fetcher.repaired for part in parts_of(entry)]

    async def _publish(self, parts: Iterable[FilePart]) -> None:
        if parts:
            self._log.hold(await asyncio.to_thread(self._checksums, tuple(dict.fromkeys(parts))))

    def _checksums(self, parts: Sequence[FilePart]) -> Checksums:
        whole = [part for part in parts if part.is_whole]
        computed = {part: self._computed.pop(part.entry.name, None) for part in whole}
        found = self._checksum_files([part.entry.name for part, value in computed.items() if value is None])
        pieces = self._checksum_parts([part for part in parts if not part.is_whole])
        known = {part: found[part.entry.name] if value is None else value for part, value in computed.items()}
        return {**known, **pieces}

    def _checksum_parts(self, parts: Iterable[FilePart]) -> Checksums:
        return {part: part_checksum(self._stage, part) for part in parts}
