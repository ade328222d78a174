"""Reads and writes the records of a destination: appended while a sync runs, merged at its end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

import structlog

from podferry.contract.destination.private_names import SYNC_DIR
from podferry.contract.destination.sync_record import (
    SyncedArchive,
    SyncedFile,
    SyncRecord,
    decode_sync_record,
    encode_sync_record,
)
from podferry.contract.errors import Corrupt, NotFound
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.sync.plan import Records
from podferry.storage.store import Store

FLUSH_SECONDS, FLUSH_SHARE = 1.0, 0.02
"""Between two records: this time, and this share of what the sync has taken so far. A kill costs that much
work; ten hours make 330 records, which the next sync has to read."""
READS = 16
"""Records read in parallel."""
log = structlog.get_logger(__name__)


class RecordLog:
    """The records of one source at one destination.

    1. `load`, before the plan.
    2. `add_file`, `add_archive` and `flush`, while files are moved.
    3. `merge`, when everything is equal.

    Several syncs to one destination may run in parallel: each removes only what it has read or written.

    Args:
        target: The destination.
        source: URI of the source.
        attempts: For each request.
    """

    def __init__(self, target: Store, source: str, attempts: int) -> None:
        self._target, self._source, self._attempts = target, source, attempts
        self._files: list[SyncedFile] = []
        self._archives: list[SyncedArchive] = []
        self._names: list[str] = []
        self._started_at = self._flushed_at = time.monotonic()

    async def load(self) -> Records:
        """What the records of this source say; a damaged one proves nothing, and is left out.

        Raises:
            FormatTooNew: A later podferry has written one.
        """
        names = await retry(self._attempts, self._list)
        found: list[SyncRecord] = []

        async def read(name: str) -> None:
            """Take a record if it is one of this source."""
            try:
                data = await retry(self._attempts, lambda: self._target.read(name))
                record = decode_sync_record(bytes(data), str(self._target.uri / name))
            except NotFound:  # another sync has merged it
                return
            except Corrupt as error:
                log.warning("a record of a sync is damaged", record=name, reason=str(error))
                self._names.append(name)
                return
            if record.source == self._source:
                self._names.append(name)
                found.append(record)

        await for_each_limited(names, read, READS)
        files = frozenset(file for record in found for file in record.files)
        return Records(files, tuple(archive for record in found for archive in record.archives))

    async def _list(self) -> list[str]:
        return [entry.name async for entry in self._target.entries(SYNC_DIR)]

    @property
    def is_one_record(self) -> bool:
        """Whether exactly one record says everything: merging would not change it."""
        return len(self._names) == 1

    def add_file(self, file: SyncedFile) -> None:
        """Record a file; it is written with the next `flush`."""
        self._files.append(file)

    def add_archive(self, archive: SyncedArchive) -> None:
        """Record an archive; likewise."""
        self._archives.append(archive)

    async def flush_if_due(self) -> None:
        """Write what was added, if the last record is a while ago."""
        interval = FLUSH_SECONDS + FLUSH_SHARE * (self._flushed_at - self._started_at)
        if time.monotonic() - self._flushed_at >= interval:
            await self.flush()

    async def flush(self) -> None:
        """Write what was added since the last time as one more record.

        If that fails or is cancelled, the next record has it.
        """
        self._flushed_at = time.monotonic()
        files, archives = self._files, self._archives
        if not (files or archives):
            return
        self._files, self._archives = [], []
        try:
            await self._write(SyncRecord(self._source, tuple(files), tuple(archives)))
        except BaseException:
            self._files, self._archives = [*files, *self._files], [*archives, *self._archives]
            raise

    async def merge(self, files: Iterable[SyncedFile], archives: Iterable[SyncedArchive]) -> None:
        """Replace the records by one of these files and archives."""
        await self.flush()
        names, self._names = self._names, []
        await self._write(SyncRecord(self._source, tuple(sorted(files)), tuple(archives)))
        await retry(self._attempts, lambda: self._target.delete(names))

    async def _write(self, record: SyncRecord) -> None:
        name, data = f"{SYNC_DIR}/{secrets.token_hex(8)}.json", encode_sync_record(record)
        await retry(self._attempts, lambda: self._target.write(name, data))
        self._names.append(name)
