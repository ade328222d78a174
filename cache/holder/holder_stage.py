"""One dataset of a holder: adopted, fetched until it is complete, then served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from podferry.cache.holder.content_checksums import record_checksums, remove_damaged
from podferry.contract.cache_api import Filling, HeldDataset
from podferry.contract.errors import FerryError, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.status import DatasetStatus
from podferry.contract.versioned_json import encode_json
from podferry.sidecar.dataset.dataset_job import DatasetJob
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


class HolderStage:
    """Keeps one dataset in a directory.

    Args:
        make_job: A new job that stages it; its staging directory is `root`.
        root: The files.
        directory: Where records about them are kept.
    """

    def __init__(self, uri: str, make_job: Callable[[], DatasetJob], root: Path, directory: Path) -> None:
        self.uri, self.root = uri, root
        self._make_job, self._directory = make_job, directory
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
    def filling(self) -> Filling:
        """How far it is."""
        status = self.status
        return Filling(status.bytes, status.bytes_done)

    async def wait(self, seconds: float) -> None:
        """Wait until it is complete or has failed, or for this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

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
        manifest = await retry_temporary(self._fetch, None, PATIENCE_SECONDS)
        checksums = await asyncio.to_thread(record_checksums, self.root, self._directory, manifest)
        document = HeldDataset(manifest, checksums)
        body = await asyncio.to_thread(encode_json, document)
        return CompleteStage(document, body, {entry.name: entry for entry in manifest.entries})

    async def _fetch(self) -> Manifest:
        await self._job.close()
        self._job = self._make_job()
        planned = await self._job.plan()
        Refused.raise_any(fit_problems([planned.sized], in_pod=False))
        await planned.fetch()
        return planned.manifest

    async def close(self) -> None:
        """Release the stage; its files stay for the next holder."""
        await self._job.close()
