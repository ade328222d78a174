"""What a restarted worker must know of an upload, so that it sends only the parts that were in flight.

    <ledgers>/<number of the pin>.jsonl    the plan, then a line for all that the store has confirmed

Lines are appended, each by one call. A kill leaves at most the last one torn, which is dropped: what it said
is then sent again. A ledger that cannot be written costs that, never the upload.
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
    """A file as it will be sent.

    Attributes:
        name: In the checkpoint.
        identity: Of what is held.
        part_bytes: Size of each part but the last.
        xxh128: Of the whole.
        parts: XXH3-128 of each part, in order.
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
    """The first line: what is to be sent, as the first pass read it.

    Attributes:
        folder: The checkpoint's, relative to the lineage.
        files: All of them, sorted by name.
    """

    folder: str
    files: tuple[PlannedFile, ...]
    format: int = FORMAT

    def fits(self, pinned: HeldCheckpoint) -> bool:
        """Whether it was made for what this pin holds: numbers of pins are used again."""
        return self.format == FORMAT and {file.name: file.identity for file in self.files} == dict(
            pinned.held
        )

    def target(self, name: str) -> str:
        """Where a file goes, relative to the lineage."""
        return f"{self.folder}/{name}"


class UploadStarted(msgspec.Struct, frozen=True, tag="begun"):
    """An upload in parts has begun; what was sent of this file in an earlier one counts no more."""

    file: str
    upload: str


class PartSent(msgspec.Struct, frozen=True, tag="sent"):
    """The store has a part."""

    file: str
    receipt: UploadedPart


class FileSent(msgspec.Struct, frozen=True, tag="done"):
    """The object is there."""

    file: str


Event = UploadStarted | PartSent | FileSent
_PLAN = msgspec.json.Decoder(UploadPlan)
_EVENT: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class UploadJournal:
    """The course of one upload.

    Attributes:
        plan: What is to be sent.
        uploads: The uploads in parts that have begun and are not complete, by file.
        done: Files whose objects are there.
    """

    def __init__(self, path: Path, plan: UploadPlan) -> None:
        self._path = path
        self._kept = True
        self.plan = plan
        self.uploads: dict[str, str] = {}
        self.done: set[str] = set()
        self._receipts: dict[str, dict[int, UploadedPart]] = {}

    def note(self, event: Event) -> None:
        """Take in what has happened, and keep it."""
        self.take_in(event)
        self.append(event)

    def take_in(self, event: Event) -> None:
        """Take in what has happened."""
        match event:
            case UploadStarted(file=file, upload=upload):
                self.uploads[file], self._receipts[file] = upload, {}
                self.done.discard(file)
            case PartSent(file=file, receipt=receipt):
                self._receipts.setdefault(file, {})[receipt.number] = receipt
            case FileSent(file=file):
                self.done.add(file)
                self.uploads.pop(file, None)
                self._receipts.pop(file, None)

    def append(self, line: UploadPlan | Event) -> None:
        """Add a line; none any more after one that could not be written, which may be torn."""
        if not self._kept:
            return
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            self._kept = False
            log.warning("no record of this upload: a restart would send it anew", reason=str(error))

    def lost(self, file: str) -> None:
        """The store no longer knows this file's upload, or its object."""
        self.uploads.pop(file, None)
        self._receipts.pop(file, None)
        self.done.discard(file)

    def receipts(self, file: str) -> list[UploadedPart]:
        """Of the parts that the store has, by number."""
        return [receipt for _, receipt in sorted(self._receipts.get(file, {}).items())]

    def missing(self, file: PlannedFile) -> list[int]:
        """The numbers of the parts that are still to be sent."""
        held = self._receipts.get(file.name, {})
        return [number for number in range(1, len(file.parts) + 1) if number not in held]

    def remove(self) -> None:
        """Forget it, also on disk."""
        self._kept = False
        self._path.unlink(missing_ok=True)


class UploadJournals:
    """The folder of all ledgers, one for each pin that has been begun to be sent.

    Args:
        folder: With room of its own and kept over a worker's restart, such as the control volume.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def numbers(self) -> list[int]:
        """The pins that have a ledger, oldest first."""
        found = self._folder.glob(f"*{SUFFIX}")
        return sorted(int(path.stem) for path in found if path.stem.isdecimal())

    def new(self, number: int, plan: UploadPlan) -> UploadJournal:
        """Begin a pin's ledger; an earlier one is replaced."""
        path = self._path(number)
        ledger = UploadJournal(path, plan)
        with suppress(OSError):  # appending says why it cannot
            self._folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        ledger.append(plan)
        return ledger

    def find(self, number: int) -> UploadJournal | None:
        """A pin's ledger as far as it is whole, None where there is none that can be read."""
        path = self._path(number)
        try:
            first, *others = path.read_bytes().splitlines(keepends=True) or [b""]
            ledger = UploadJournal(path, _PLAN.decode(_whole(first)))
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.info("a record of an upload cannot be read: it is sent anew", pin=number, reason=str(error))
            path.unlink(missing_ok=True)
            return None
        whole = len(first)
        for line in others:
            try:
                ledger.take_in(_EVENT.decode(_whole(line)))
            except msgspec.MsgspecError:
                break
            whole += len(line)
        os.truncate(path, whole)  # what is appended must not continue a torn line
        return ledger

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}{SUFFIX}"


def _whole(line: bytes) -> bytes:
    """The line, if a kill has not torn it.

    Raises:
        DecodeError: It has.
    """
    if not line.endswith(b"\n"):
        raise msgspec.DecodeError("the line is torn")
    return line
