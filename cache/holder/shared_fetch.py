"""What one holder fetches together with the others: its log, and the files that they take from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from io import FileIO
from pathlib import Path

from podferry.cache.holder.content_checksums import NONE_COMPUTED, file_checksums
from podferry.cache.holder.version import HeldFile
from podferry.cache.peers.file_log import FileLog
from podferry.cache.peers.peers import Peers
from podferry.cache.peers.shared_fill import SharedFill
from podferry.cache.peers.staged_parts import adopted_log, open_staged
from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import Asker, HeldDataset, Progress
from podferry.contract.errors import Changed, NotFound
from podferry.sidecar.dataset.dataset_job import PlannedDataset
from podferry.sidecar.staging.staging_dir import StagingDir


class SharedFetch:
    """Fetches versions of a dataset, the last one of which the others may read.

    Args:
        peers: The other holders; None if there are none.
    """

    def __init__(self, peers: Peers | None) -> None:
        self._peers = peers
        self._log: FileLog | None = None
        self._staging: StagingDir | None = None
        self._listed = asyncio.Event()
        self._computed_of, self._computed = "", dict[str, int]()

    async def fetch(self, planned: PlannedDataset, directory: Path) -> None:
        """Fetch a version.

        Args:
            planned: What to fetch.
            directory: Of its records.

        Raises:
            Changed: A file is another one than was listed, or has been removed since.
            Other errors of `PlannedDataset.fetch`.
        """
        try:
            await self._fetch(planned, directory)
        except NotFound as error:
            raise Changed(*error.problems) from error

    async def _fetch(self, planned: PlannedDataset, directory: Path) -> None:
        if self._peers is None:
            if self._computed_of != planned.manifest.digest:
                self._computed_of, self._computed = planned.manifest.digest, {}
            planned.job.staging.checksums = self._computed
            await planned.fetch()
            return
        staging, manifest = planned.job.staging, planned.manifest
        log = FileLog(manifest)
        self._share(log, staging)
        known = partial(file_checksums, staging.root, directory, manifest.digest)
        await SharedFill(planned, log, self._peers, known).run()

    async def adopt(self, held: HeldDataset, staging: StagingDir) -> None:
        """Let the others have a version that was found complete."""
        if self._peers is not None:
            self._share(await asyncio.to_thread(adopted_log, held, staging), staging)

    def _share(self, log: FileLog, staging: StagingDir) -> None:
        self._log, self._staging = log, staging
        self._listed.set()

    def take_checksums(self, digest: str) -> Mapping[str, int]:
        """CRC-64/NVME of the files of a version that are known, by name. They are needed once."""
        if self._log is not None and self._log.manifest.digest == digest:
            return self._log.checksums()
        known = self._computed if self._computed_of == digest else NONE_COMPUTED
        self._computed_of, self._computed = "", {}
        return known

    def file(self, digest: str, name: str) -> HeldFile | None:
        """A file of the version that is being fetched, for another holder: it verifies what it takes."""
        log, staging = self._log, self._staging
        entry = log.knows(name) if log is not None and log.manifest.digest == digest else None
        if log is None or staging is None or entry is None:
            return None

        def opened(start: int, length: int) -> FileIO:
            if not log.held(name, start, length):
                raise FileNotFoundError(name)
            return open_staged(staging, entry)

        return HeldFile(entry, staging.root / name, opened)

    async def news(
        self, asker: Asker, log_id: str, since: int, wait_seconds: float, bytes_done: Callable[[], int]
    ) -> Progress | None:
        """What another holder asks for; None if nothing is shared.

        Args:
            asker: The other one.
            log_id: The log that it has read.
            since: How many news of it.
            wait_seconds: How long to wait for more.
            bytes_done: How much has been fetched.
        """
        if self._peers is None:
            return None
        self._peers.announce(asker)
        name = self._peers.name
        if self._log is None:
            await wait_for(self._listed, wait_seconds)
        else:
            await self._log.wait(log_id, since, wait_seconds)
        news = self._log
        if news is None:
            return Progress(name, "", 0)
        found = news.since(log_id, since)
        return Progress(name, news.id, len(news), found, news.manifest.digest, bytes_done())
