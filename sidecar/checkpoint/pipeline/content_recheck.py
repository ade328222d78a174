"""Reads durable checkpoints again where a file's identity may hide new content.

`suspect_files.py` says which. After training has ended, all others are read too, the newest first, for a
share of the time that the caller waits for. A version with other content than was committed is not durable
any more: the next scan finds it as a new one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import FileIO

import structlog
import xxhash

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion
from podferry.sidecar.checkpoint.pipeline.detector_record import DetectorRecord
from podferry.sidecar.checkpoint.pipeline.durability_tracker import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.marked_content import MarkedContent
from podferry.sidecar.checkpoint.pipeline.suspect_files import SuspectFiles
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.config.tuning import MIB
from podferry.sidecar.runtime.file_identity import FileIdentity

log = structlog.get_logger(__name__)

OPEN_SHARE = 20.0
"""A file that stays open is read again after this many times as long as reading took: 5 % of a core."""
FINAL_SHARE, FINAL_SECONDS = 0.1, 10.0
"""The look at the end, at what is not suspect: this share of the flush's time, and at most these seconds."""
MARK_SECONDS = 5.0
"""At most, to read what is open for writing when it is marked: the trainer waits for the answer."""
READ_BYTES = 4 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """Files of one checkpoint; `until`, by a monotonic clock, ends a look for which there was no sign."""

    files: frozenset[str]
    until: float = float("inf")


class ContentRecheck:
    """What is to be read again, and the reading, which `run` does in a task of its own."""

    def __init__(
        self,
        suspects: SuspectFiles,
        detector: Detector,
        record: DetectorRecord,
        registry: VersionRegistry,
        queue: UploadQueue,
        tracker: DurabilityTracker,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.suspects, self._detector, self._registry = suspects, detector, registry
        self._queue, self._tracker, self._monotonic = queue, tracker, monotonic
        self.marks = MarkedContent(detector, record, self._read_open)
        self._waiting: dict[str, Reading] = {}
        self._current: dict[str, Reading] = {}
        self._final_until: float | None = None
        self._looked = False
        self._sent_at_the_end: set[str] = set()
        self._asked_while_sent: set[str] = set()
        self._wake = asyncio.Event()

    def look_at_the_end(self, flush_seconds: float) -> None:
        """Nothing is written any more: the next scan has all durable versions read, once."""
        if self._final_until is None:
            self._final_until = self._monotonic() + min(flush_seconds * FINAL_SHARE, FINAL_SECONDS)

    def ask(self) -> None:
        """Someone waits for durability: ask which files are open, now and after each upload that runs."""
        self.suspects.ask()
        self._asked_while_sent = {version.name for version in self._queue.versions()}

    async def after_scan(self, closed: set[str], settled: Mapping[str, Candidate]) -> None:
        """Add what is suspect; `closed` and `settled` are what the scan was given."""
        self.suspects.note_closes(closed, settled, self._detector.present)
        busy = {version.name for version in self._queue.versions()}  # their holds still move change times
        idle = {name: one for name, one in self._durable().items() if name not in busy}
        found = await asyncio.to_thread(self.suspects.find, idle)
        durable = self._durable()
        waiting = {name: one for name, one in self._waiting.items() if name in durable}
        for name, files in found.items():
            known = waiting[name].files if name in waiting else frozenset[str]()
            waiting[name] = Reading(known | files)
        if self._final_until is not None and not self._looked:
            self._looked, self._sent_at_the_end = True, busy
            waiting = {name: self._entire(one) for name, one in idle.items()} | waiting
        self._waiting = waiting
        self._show()
        self._wake.set()

    def _entire(self, candidate: Candidate) -> Reading:
        return Reading(frozenset(candidate.data_files), self._final_until or 0.0)

    def release(self, version: CheckpointVersion) -> None:
        """Release the hold of a version whose content is at the destination."""
        name, suspect = version.name, self.suspects.release(version.hold)
        if name in self._asked_while_sent:
            self._asked_while_sent.remove(name)
            suspect |= self.suspects.open_now(version.candidate)
        if suspect:
            self._waiting[name] = Reading(suspect)
        elif name in self._sent_at_the_end:
            self._waiting[name] = self._entire(version.candidate)
        if name in self._waiting:
            self._show()
            self._wake.set()

    def _durable(self) -> dict[str, Candidate]:
        """What is in the directory as it was committed, by identities."""
        present, settled = self._detector.present, self._registry.settled()
        return {
            name: present[name]
            for name, candidate in self._registry.durable().items()
            if name in present and settled[name] == candidate and present[name].is_subset_of(candidate)
        }

    async def run(self) -> None:
        """Read until cancelled, the newest checkpoint first."""
        while True:
            ready = [(name, one) for name, one in self._durable().items() if name in self._waiting]
            if not ready:
                self._wake.clear()
                await self._wake.wait()
                continue
            name, candidate = ready[-1]
            self._current = {name: self._waiting.pop(name)}
            started = self._monotonic()
            if await self._differs(candidate, self._current[name]):
                self._forget(name)
            self.suspects.pause(OPEN_SHARE * (self._monotonic() - started))
            self._current = {}
            self._show()

    async def _differs(self, candidate: Candidate, reading: Reading) -> bool:
        """Whether a file has other content than was committed."""
        known = self._registry.fingerprints(candidate.name)
        for file, identity in candidate.data_files.items():
            if file in reading.files and file in known:
                found = await self._fingerprint(file, identity, reading.until)
                if found is not None and found != known[file]:
                    log.info("new content under an old identity", name=candidate.name, file=file)
                    return True
        return False

    def _forget(self, name: str) -> None:
        """The next scan finds a version that is not durable; a mark was for the content before."""
        self.marks.forget(name)
        self._registry.forget_durable(name)
        self._detector.wake()

    async def _read_open(self, candidate: Candidate) -> dict[str, str]:
        """The fingerprints of those of its files that are open for writing: the trainer waits for it."""
        until, found = self._monotonic() + MARK_SECONDS, dict[str, str]()
        opened = await asyncio.to_thread(self.suspects.open_now, candidate)
        for file in sorted(opened):
            fingerprint = await self._fingerprint(file, candidate.data_files[file], until)
            found |= {file: fingerprint} if fingerprint is not None else {}
        return found

    async def _fingerprint(self, file: str, identity: FileIdentity, until: float) -> str | None:
        """XXH3-128; None without time, or if the file has changed visibly and a scan will find that."""
        digest = xxhash.xxh3_128()
        try:
            with (self._detector.root / file).open("rb", buffering=0) as opened:
                while self._monotonic() < until:
                    if not await asyncio.to_thread(_read_some, opened, digest):
                        same = FileIdentity.of(os.fstat(opened.fileno())) == identity
                        return digest.hexdigest() if same else None
        except OSError as error:
            log.info("a checkpoint cannot be read again", file=file, reason=str(error))
        return None

    def _show(self) -> None:
        """Report what is unknown until it has been read."""
        present = self._detector.present
        names = [name for name in (self._waiting | self._current) if name in present]
        self._tracker.rereading = {name: present[name].bytes for name in names}
        self._tracker.report()


def _read_some(file: FileIO, digest: xxhash.xxh3_128) -> bool:
    """Add the next bytes to a digest; whether there were any."""
    data = file.read(READ_BYTES)
    digest.update(data)
    return bool(data)
