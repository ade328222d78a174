"""One dataset that is read where it is: adopted at once if it is complete, never changed under a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from podferry.cache.holder.content_checksums import file_checksum
from podferry.cache.holder.holder_stage import CompleteStage, HolderStage, complete_stage
from podferry.cache.peers.peers import Peers
from podferry.cache.shared_stage.abandoned import free_oldest
from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.reader_locks import ReaderLocks
from podferry.contract.cache_api import FORMAT
from podferry.contract.errors import Corrupt, FerryError, FormatTooNew, Refused
from podferry.contract.manifest import Manifest
from podferry.contract.pack import is_pack
from podferry.contract.shared_stage import SharedRecord
from podferry.contract.spec import Unpack
from podferry.contract.versioned_json import decode_document, encode_json
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.runtime.atomic_file import replace_file

log = structlog.get_logger(__name__)
SHOWN_CHARACTERS = 8
"""Of a lock's random name."""
RELOCK_SECONDS = 10.0
"""In which readers without a lock ask a new holder for one: some have seen the old one end. They ask every
second."""


class SharedStage(HolderStage):
    """See `HolderStage`; the dataset is at `place`.

    Args:
        uri: Of the dataset.
        make_job: A new job that stages it.
        place: Where it is; its directories exist.
        peers: The other holders of the dataset; None if there are none.
        relock_seconds: Before an adopted dataset that has no reader is compared with its source.
    """

    def __init__(
        self,
        uri: str,
        make_job: Callable[[], DatasetJob],
        place: SharedPlace,
        peers: Peers | None = None,
        relock_seconds: float = RELOCK_SECONDS,
    ) -> None:
        super().__init__(uri, make_job, place.files, place.private, peers)
        self.place, self.locks = place, ReaderLocks(place)
        self._relock_seconds = relock_seconds

    @property
    def readers(self) -> tuple[str, ...]:
        """Those that hold locks: the holder knows no more of them."""
        return tuple(f"a reader in place ({name[:SHOWN_CHARACTERS]})" for name in self.locks.names())

    async def _filled(self) -> CompleteStage:
        record = self._read_record()
        if record is None or not await asyncio.to_thread(self._is_whole, record):
            return await self._fill_anew()
        adopted = await complete_stage(record.held)
        self.complete = adopted
        self._changed.set()
        log.info("complete dataset adopted", uri=self.uri)
        await asyncio.sleep(self._relock_seconds)
        if self.locks.in_use():
            log.info("readers use the dataset: it is not compared with its source", uri=self.uri)
            return adopted
        self.complete = None
        self._changed.clear()
        return await self._compared(record)

    async def _compared(self, record: SharedRecord) -> CompleteStage:
        """Take what has changed at the source; the dataset as it is if the source cannot be read."""
        try:
            return await self._fill_anew(patient=False)
        except FerryError as error:
            if not await asyncio.to_thread(self._is_whole, record):
                return await self._fill_anew()
            log.warning("the dataset is served as it is: its source cannot be read", reason=str(error))
            self._write_record(record)
            return await complete_stage(record.held)

    async def _fill_anew(self, *, patient: bool = True) -> CompleteStage:
        # Readers without a holder must not take what is being changed for complete.
        self.place.record.unlink(missing_ok=True)
        complete = await (super()._filled() if patient else self._recorded(await self._fetch()))
        self._write_record(SharedRecord(self.uri, complete.document))
        return complete

    async def _fetch(self) -> Manifest:
        manifest = await self._fetched()
        if is_pack(manifest.entries, Unpack.AUTO):
            remedy = "Leave --shared out: readers that copy unpack it"
            raise Refused.of("a packed dataset cannot be shared: nobody would unpack it", self.uri, remedy)
        return manifest

    async def _fetched(self) -> Manifest:
        while True:
            try:
                return await super()._fetch()
            except Refused:
                if not await asyncio.to_thread(free_oldest, self.place.directory.parent):
                    raise

    def _read_record(self) -> SharedRecord | None:
        try:
            data = self.place.record.read_bytes()
            record = decode_document(data, SharedRecord, FORMAT, str(self.place.record))
        except (OSError, Corrupt, FormatTooNew):
            return None
        return record if record.uri == self.uri else None

    def _write_record(self, record: SharedRecord) -> None:
        replace_file(self.place.record, encode_json(record))

    def _is_whole(self, record: SharedRecord) -> bool:
        entries, checksums = record.held.manifest.entries, record.held.checksums
        try:
            pairs = zip(entries, checksums, strict=True)
            return all(file_checksum(self.root / entry.name) == checksum for entry, checksum in pairs)
        except (OSError, ValueError):
            return False
