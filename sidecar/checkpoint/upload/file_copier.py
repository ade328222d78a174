"""Copies small unchanged files into a checkpoint's own folder, where the store can copy by itself.

A folder with all of its files needs no podferry to be read: the tool of the store copies it. What is not
copied stays where it is, and the commit refers to it there.

A copy never replaces an object: one that is there already may be listed by a commit. The garbage collector
sees a copy as it sees an uploaded file: it is in the checkpoint's own folder, whose names no removal has
planned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from podferry.contract.errors import Corrupt, FerryError, NotFound, PermanentError
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.upload.upload_journal import FileSent, PlannedFile, UploadJournal
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.server_copy import ServerCopy

log = structlog.get_logger(__name__)

CONCURRENT_COPIES = 32
"""Copies are bound by latency."""


@dataclass(slots=True)
class Copies:
    """The result for the files of one checkpoint.

    Attributes:
        made: Files whose objects are now in its folder.
        damaged: Files whose copies are not what they should be: sending them replaces the copies.
    """

    made: set[PlannedFile] = field(default_factory=set)
    damaged: set[PlannedFile] = field(default_factory=set)


class FileCopier:
    """Copies files within one lineage. After a refusal of the store it copies no more."""

    def __init__(self, store: LineageStore, settings: CheckpointSettings) -> None:
        self._store, self._settings = store, settings
        self._server_copy = store.destination.server_copy

    async def copy(self, journal: UploadJournal, sources: Mapping[PlannedFile, str]) -> Copies:
        """Copy the objects `sources` to where the journal's plan has these files; raises nothing.

        A file that is not in the result is where it was.
        """
        result = Copies()
        server_copy, chosen = self._server_copy, self._chosen(sources)
        if server_copy is None or not chosen:
            return result
        try:
            async with asyncio.timeout(self._settings.copy_seconds):
                present = {entry.name: entry.size async for entry in self._store.entries(journal.plan.folder)}
                batch = _Batch(self._store, server_copy, journal, result)
                missing = batch.without(present, chosen)
                await for_each_limited(
                    missing, lambda file: batch.copy_file(file, sources[file]), CONCURRENT_COPIES
                )
        except (FerryError, TimeoutError) as error:
            left = len(chosen) - len(result.made)
            log.info("unchanged files are referenced, not copied", files=left, reason=str(error))
            if isinstance(error, PermanentError):
                self._server_copy = None
        return result

    def _chosen(self, sources: Mapping[PlannedFile, str]) -> list[PlannedFile]:
        limit = self._settings.copy_bytes
        if self._server_copy is not None:
            limit = min(limit, self._server_copy.max_bytes)
        small = sorted((file for file in sources if file.size <= limit), key=lambda file: file.size)
        return small[: self._settings.copy_files]


@dataclass(frozen=True, slots=True)
class _Batch:
    """The copies of one checkpoint."""

    store: LineageStore
    server_copy: ServerCopy
    journal: UploadJournal
    result: Copies

    def without(self, present: Mapping[str, int], files: list[PlannedFile]) -> list[PlannedFile]:
        """The files that are not in the folder. Of those that are, only the journal's own count as copied."""
        sizes = {file: present.get(self.journal.plan.target(file.name)) for file in files}
        sent = self.journal.sent
        self.result.made.update(
            file for file, size in sizes.items() if size == file.size and file.name in sent
        )
        return [file for file, size in sizes.items() if size is None]

    async def copy_file(self, file: PlannedFile, source: str) -> None:
        """Copy a file at the store; its reference stays if `source` is gone, and a damaged copy is listed."""
        target = self.store.path(self.journal.plan.target(file.name))
        try:
            found = await self.server_copy.copy(self.store.path(source), target)
        except NotFound:
            return  # it has been removed: the reference is checked, too
        except Corrupt as error:
            log.warning("a copy at the store is damaged: the file is sent", file=file.name, reason=str(error))
            self.result.damaged.add(file)
            return
        if found.size != file.size:
            self.result.damaged.add(file)
            return
        self.journal.record(FileSent(file.name))
        self.result.made.add(file)
