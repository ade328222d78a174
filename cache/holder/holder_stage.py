"""One dataset of a holder: adopted, fetched until it is complete, then served."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import structlog

from podferry.cache.holder.content_checksums import file_checksums, record_checksums, remove_damaged
from podferry.cache.peers.file_log import FileLog
from podferry.cache.peers.peers import Peers
from podferry.cache.peers.shared_fill import SharedFill
from podferry.cache.peers.staged_parts import open_staged
from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import Asker, Filling, HeldDataset, Progress
from podferry.contract.errors import FerryError, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.status import DatasetStatus
from podferry.contract.versioned_json import encode_json
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.fit_check import fit_problems
from podferry.storage.retries import retry_temporary

log = structlog.get_logger(__name__)
PATIENCE_SECONDS = 3600.0
"""For a store that does not respond: readers take the source meanwhile, and a holder has no other work."""


class CompleteStage(NamedTuple):
    """What is served.

    Attributes:
        document: For readers that ask for the dataset.
        body: The same as JSON, encoded once for all of them.
        entries: Its files by name.
    """

    document: HeldDataset
    body: bytes
    entries: dict[str, Entry]

    @property
    def digest(self) -> str:
        """Of its manifest."""
        return self.document.manifest.digest


class HolderStage:
    """Keeps one dataset in a directory.

    Args:
        make_job: A new job that stages it; its staging directory is `root`.
        root: The files.
        directory: Where records about them are kept.
        peers: The other holders of the dataset; None if there are none.
    """

    def __init__(
        self,
        uri: str,
        make_job: Callable[[], DatasetJob],
        root: Path,
        directory: Path,
        peers: Peers | None = None,
    ) -> None:
        self.uri, self.root = uri, root
        self._make_job, self._directory, self._peers = make_job, directory, peers
        self._log: FileLog | None = None
        self._listed = asyncio.Event()
        self._job = make_job()
        self.complete: CompleteStage | None = None
        self.failure: FerryError | None = None
        self._changed = asyncio.Event()

    @property
    def status(self) -> DatasetStatus:
        """Its files, bytes and rate."""
        self._job.progress.refresh()
        return self._job.status

    @property
    def readers(self) -> tuple[str, ...]:
        """Those that read without requests."""
        return ()

    @property
    def filling(self) -> Filling:
        """How far it is."""
        status = self.status
        return Filling(status.bytes, status.bytes_done)

    async def wait(self, seconds: float) -> None:
        """Wait until it is complete or has failed, or for this long."""
        await wait_for(self._changed, seconds)

    def file(self, digest: str, name: str) -> Entry | None:
        """A file of the manifest with this digest, of which the stage may have something."""
        if self.complete is not None:
            return self.complete.entries.get(name) if self.complete.digest == digest else None
        if self._log is not None and self._log.manifest.digest == digest:
            return self._log.knows(name)
        return None

    def open(self, entry: Entry, start: int, length: int) -> FileIO:
        """Open a file of which these bytes are needed; raises `FileNotFoundError` without them."""
        if self.complete is not None:
            path = self.root / entry.name
            return FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "r")
        if self._log is None or not self._log.held(entry.name, start, length):
            raise FileNotFoundError(entry.name)
        return open_staged(self._job.staging, entry)

    async def progress(self, asker: Asker, log_id: str, since: int, wait_seconds: float) -> Progress | None:
        """What another holder asks for; None if this stage is not shared.

        Args:
            asker: The other one.
            log_id: The log that it has read.
            since: How many news of it.
            wait_seconds: How long to wait for more.
        """
        if self._peers is None:
            return None
        self._peers.announce(asker)
        name = self._peers.name
        if self._log is None:
            await wait_for(self._listed, wait_seconds)
        elif self.failure is None:
            await self._log.wait(log_id, since, wait_seconds)
        news = self._log
        if news is None:
            return Progress(name, "", 0)
        found, done = news.since(log_id, since), self.status.bytes_done
        return Progress(name, news.id, len(news), found, news.manifest.digest, done)

    async def fill(self) -> None:
        """Adopt what an earlier holder has left, fetch the rest, and serve it.

        Raises:
            FerryError: It cannot be staged; `failure` says so to readers as well.
        """
        try:
            self.complete = await self._filled()
        except FerryError as error:
            self.failure = error
            raise
        finally:
            self._changed.set()
        manifest = self.complete.document.manifest
        log.info("dataset complete", uri=self.uri, files=manifest.files, bytes=manifest.bytes)

    async def _filled(self) -> CompleteStage:
        damaged = await asyncio.to_thread(remove_damaged, self.root, self._directory)
        if damaged:
            log.warning("files have changed in memory, and are fetched again", files=len(damaged))
        return await self._recorded(await retry_temporary(self._fetch, None, PATIENCE_SECONDS))

    async def _recorded(self, manifest: Manifest) -> CompleteStage:
        """What is served of files that are all there, with their checksums."""
        checksums = await asyncio.to_thread(self._record, manifest)
        return await complete_stage(HeldDataset(manifest, checksums))

    async def _fetch(self) -> Manifest:
        await self._job.close()
        self._job = self._make_job()
        planned = await self._job.plan()
        Refused.raise_any(fit_problems([planned.sized], in_pod=False))
        if self._peers is None:
            await planned.fetch()
        else:
            await self._fetch_shared(planned, self._peers)
        return planned.manifest

    async def _fetch_shared(self, planned: PlannedDataset, peers: Peers) -> None:
        digest = planned.manifest.digest
        self._log = FileLog(planned.manifest)
        self._listed.set()

        def checksum_files(names: Sequence[str]) -> Mapping[str, int]:
            return file_checksums(self.root, self._directory, digest, names)

        await SharedFill(planned, self._log, peers, checksum_files).run()

    def _record(self, manifest: Manifest) -> tuple[int, ...]:
        computed = self._log.checksums() if self._log is not None else {}
        return record_checksums(self.root, self._directory, manifest, computed)

    async def close(self) -> None:
        """Release the stage; its files stay for the next holder."""
        await self._job.close()


async def complete_stage(document: HeldDataset) -> CompleteStage:
    """A stage with all files of a document."""
    body = await asyncio.to_thread(encode_json, document)
    return CompleteStage(document, body, {entry.name: entry for entry in document.manifest.entries})
