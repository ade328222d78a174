"""Records the progress of an upload, so that a restarted worker resends only the parts that were in flight.

    <journals>/<number of the hold>.jsonl    the plan, then a line per event that the store has confirmed

Each line is appended by one call. A kill leaves at most the last line torn; it is dropped, and its event is
sent again. If a journal cannot be written, a restart sends everything again; the upload continues.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.storage.multipart import UploadedPart

log = structlog.get_logger(__name__)

FORMAT = 1
SUFFIX = ".jsonl"


class PlannedFile(msgspec.Struct, frozen=True):
    """A file to send; each part but the last has `part_bytes`.

    `xxh128` is the XXH3-128 of the entire file, `parts` are those of its parts, in order.
    """

    name: str
    identity: FileIdentity
    part_bytes: int
    xxh128: str
    parts: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.identity.size


class UploadPlan(msgspec.Struct, frozen=True, tag="plan"):
    """The first line: the files as the first pass read them, by name, and their folder in the lineage."""

    folder: str
    files: tuple[PlannedFile, ...]
    format: int = FORMAT

    def matches(self, held: HeldCheckpoint) -> bool:
        """Whether this plan is for these files: numbers of holds are reused."""
        return self.format == FORMAT and {file.name: file.identity for file in self.files} == dict(held.files)

    def target(self, name: str) -> str:
        """A file's object name, relative to the lineage."""
        return f"{self.folder}/{name}"


class UploadStarted(msgspec.Struct, frozen=True, tag="begun"):
    """A multipart upload has begun; parts of this file's earlier uploads no longer count."""

    file: str
    upload: str


class PartSent(msgspec.Struct, frozen=True, tag="sent"):
    """The store has a part."""

    file: str
    receipt: UploadedPart


class FileSent(msgspec.Struct, frozen=True, tag="done"):
    """The object exists."""

    file: str


Event = UploadStarted | PartSent | FileSent
_PLAN = msgspec.json.Decoder(UploadPlan)
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class UploadJournal:
    """The progress of one checkpoint's upload.

    `uploads` are the ids of the incomplete multipart uploads, by file; `sent` are files whose objects exist.
    """

    def __init__(self, path: Path, plan: UploadPlan) -> None:
        self._path, self._writable, self.plan = path, True, plan
        self.uploads: dict[str, str] = {}
        self.sent: set[str] = set()
        self._receipts: dict[str, dict[int, UploadedPart]] = {}

    def record(self, event: Event) -> None:
        """Apply an event and append it to the file."""
        self.apply(event)
        self.append(event)

    def apply(self, event: Event) -> None:
        """Update the state by an event."""
        match event:
            case UploadStarted(file=file, upload=upload):
                self.uploads[file], self._receipts[file] = upload, {}
                self.sent.discard(file)
            case PartSent(file=file, receipt=receipt):
                self._receipts.setdefault(file, {})[receipt.number] = receipt
            case FileSent(file=file):
                self.sent.add(file)
                self.uploads.pop(file, None)
                self._receipts.pop(file, None)

    def append(self, line: UploadPlan | Event) -> None:
        """Add a line, unless an earlier one could not be written: it may be torn."""
        if not self._writable:
            return
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            self._writable = False
            log.warning("no journal of this upload: a restart would send it again", reason=str(error))

    def forget(self, file: str) -> None:
        """The store no longer has this file's upload or object."""
        self.uploads.pop(file, None)
        self._receipts.pop(file, None)
        self.sent.discard(file)

    def receipts(self, file: str) -> list[UploadedPart]:
        """Of the parts that the store has, sorted by number."""
        return [receipt for _, receipt in sorted(self._receipts.get(file, {}).items())]

    def missing_parts(self, file: PlannedFile) -> list[int]:
        """The numbers of the parts that the store does not have."""
        received = self._receipts.get(file.name, {})
        return [number for number in range(1, len(file.parts) + 1) if number not in received]

    def remove(self) -> None:
        """Delete the file and write it no more."""
        self._writable = False
        self._path.unlink(missing_ok=True)


class UploadJournals:
    """The directory of all upload journals, one per hold whose upload has begun.

    It has space of its own and is kept when a worker restarts, such as the control volume.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def numbers(self) -> list[int]:
        """The holds that have a journal, oldest first."""
        found = self._directory.glob(f"*{SUFFIX}")
        return sorted(int(path.stem) for path in found if path.stem.isdecimal())

    def create(self, number: int, plan: UploadPlan) -> UploadJournal:
        """Begin a hold's journal; an earlier one is replaced."""
        path = self._path(number)
        journal = UploadJournal(path, plan)
        with suppress(OSError):  # `append` logs why the file cannot be written
            self._directory.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        journal.append(plan)
        return journal

    def load(self, number: int) -> UploadJournal | None:
        """A hold's journal up to a torn line; None if none is readable."""
        path = self._path(number)
        try:
            first, *events = path.read_bytes().splitlines(keepends=True) or [b""]
            journal = UploadJournal(path, _PLAN.decode(_complete(first)))
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.info("an upload journal cannot be read: sending again", hold=number, reason=str(error))
            path.unlink(missing_ok=True)
            return None
        valid_bytes = len(first)
        for line in events:
            try:
                journal.apply(_EVENT.decode(_complete(line)))
            except msgspec.MsgspecError:
                break
            valid_bytes += len(line)
        os.truncate(path, valid_bytes)  # the next line must not continue a torn one
        return journal

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}{SUFFIX}"


def _complete(line: bytes) -> bytes:
    """The line; raises `DecodeError` if a kill has torn it."""
    if not line.endswith(b"\n"):
        raise msgspec.DecodeError("the line is torn")
    return line
