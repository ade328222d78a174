"""One dataset that is read where it is: adopted at once if it is complete, never changed under a reader."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import structlog

from podferry.cache.holder.content_checksums import read_record
from podferry.cache.holder.holder_stage import HolderStage, MakeJob
from podferry.cache.holder.version import Version
from podferry.cache.peers.peers import Peers
from podferry.cache.shared_stage.abandoned import free_oldest
from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.reader_locks import ReaderLocks
from podferry.contract.cache_api import FORMAT
from podferry.contract.errors import Corrupt, FormatTooNew, Refused
from podferry.contract.manifest import Manifest
from podferry.contract.pack import is_pack
from podferry.contract.shared_stage import RECORD_FILE, SharedRecord
from podferry.contract.spec import Unpack
from podferry.contract.versioned_json import decode_document, encode_json
from podferry.sidecar.runtime.atomic_file import replace_file

log = structlog.get_logger(__name__)
SHOWN_CHARACTERS = 8
"""Of a lock's random name."""


class SharedStage(HolderStage):
    """See `HolderStage`; the dataset is at `place`.

    A running pod has mounted the directory of its version, which stays the same when it is renamed. A pod
    may get its lock just before another version is served, and mount that one: so a lock keeps its version
    and all later ones.

    Args:
        uri: Of the dataset.
        make_job: See `MakeJob`.
        place: Where it is; its directories exist.
        peers: The other holders of the dataset; None if there are none.
        settings: As of `HolderStage`.
    """

    def __init__(
        self,
        uri: str,
        make_job: MakeJob,
        place: SharedPlace,
        peers: Peers | None = None,
        **settings: Any,
    ) -> None:
        self.place, self.locks = place, ReaderLocks(place)
        super().__init__(uri, make_job, place.files, place.private, peers, **settings)

    @property
    def readers(self) -> tuple[str, ...]:
        """Those that hold locks: the holder knows no more of them."""
        return tuple(f"a reader in place ({name[:SHOWN_CHARACTERS]})" for name in self.locks.names())

    def is_locked(self, number: int) -> bool:
        """See `InPlaceReaders.is_locked`."""
        return any(one <= number for one in self.locks.numbers())

    def least_number(self) -> int:
        """See `InPlaceReaders.least_number`."""
        return max(self.locks.numbers(), default=0)

    def check(self, manifest: Manifest) -> None:
        """See `HolderStage.check`."""
        if is_pack(manifest.entries, Unpack.AUTO):
            remedy = "Leave --shared out: readers that copy unpack it"
            raise Refused.of("a packed dataset cannot be shared: nobody would unpack it", self.uri, remedy)

    async def make_room(self) -> bool:
        """See `HolderStage.make_room`: also what other holders have left."""
        parent = self.place.directory.parent
        return await super().make_room() or await asyncio.to_thread(free_oldest, parent)

    def make_lock(self, *, starts: bool = True) -> int:
        """A locked descriptor for one reader.

        Args:
            starts: Whether it mounts what is served; else it has mounted a version, perhaps the oldest.

        Raises:
            OSError: It cannot be made.
        """
        return self.locks.make(self.versions.number if starts else self.versions.oldest)

    def publish(self, version: Version) -> None:
        """See `InPlaceReaders.publish`."""
        replace_file(self.place.record, encode_json(SharedRecord(self.uri, version.document)))

    def has_left(self) -> bool:
        """See `InPlaceReaders.has_left`: a pod that runs keeps its version if the cache gets another source.

        Who has taken what was left without a holder has no lock yet, so another dataset always stays. What is
        damaged of the same one is mended in place, if nobody reads it.
        """
        left = self._left()
        if left is None:
            return False
        return not self._is_ours(*left) or self.is_locked(self.versions.number)

    def _left(self) -> tuple[str, str] | None:
        """URI and digest of the complete dataset that an earlier holder has left; empty if unreadable."""
        own = read_record(self.place.private)
        if own.manifest is not None:
            return own.uri, own.digest
        with suppress(FileNotFoundError):
            data = self.place.record.read_bytes()
            try:
                shown = decode_document(data, SharedRecord, FORMAT, RECORD_FILE)
            except (Corrupt, FormatTooNew):
                return "", ""
            return shown.uri, shown.held.manifest.digest
        return None

    def _is_ours(self, uri: str, digest: str) -> bool:
        return uri == self.uri and self.frozen_digest in {None, digest}

    def retract(self) -> None:
        """See `InPlaceReaders.retract`."""
        self.place.record.unlink(missing_ok=True)
