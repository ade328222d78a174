"""What a restarted worker must know: whether the gate has opened, what is durable, who it is.

One small JSON document that is replaced as a whole, so that a kill at any moment leaves the old one or the
new one.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec

from podferry.contract.api import Gate
from podferry.contract.commit import CommittedFile
from podferry.contract.status import DurableCheckpoint, RestoredStatus
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.atomic_file import replace_file
from podferry.sidecar.runtime.file_identity import FileIdentity

FORMAT = 1
Files = tuple[tuple[str, FileIdentity], ...]


class PublishedPart(msgspec.Struct, frozen=True):
    """A rank's part that has been sent and waits for the other ranks' parts.

    Attributes:
        files: As the trainer wrote them.
        completed_at: When they were found whole, seconds since the epoch.
        changed_at: When the newest of them was last changed, seconds since the epoch.
        folder: Where they lie at the destination.
        sent: The same files, as a commit lists them.
    """

    files: Files
    completed_at: float
    changed_at: float
    folder: str
    sent: tuple[CommittedFile, ...]


class JournalRecord(msgspec.Struct):
    """The journal's content.

    Attributes:
        gate: What the open gate said; set once, before anybody is let through.
        handled: The files of each checkpoint whose present version is durable or was restored.
        durable: What this agent made durable.
        left_out: What lay there before this agent and is older than what is committed: never uploaded.
        restored: What training resumed from.
        starts: How often a worker has started.
        writer: Names this agent at the destination, for as long as its pod lives.
        placed: The sequence that each pin's checkpoint got, by the pin's number: what lies between two of
            them must get a number between theirs.
        offered: Parts that wait for other ranks', by the checkpoint's name.
        marks: What the trainer has called whole, by the checkpoint's name.
        newest_first: The pod ends: the newest checkpoint goes first. A worker that starts again must know:
            what is committed before an older one decides on that one's number.
        drain_until: When the drain must have ended, on the machine's monotonic clock; None before it begins.
    """

    gate: Gate | None = None
    handled: dict[str, Files] = {}
    durable: list[DurableCheckpoint] = []
    left_out: dict[str, Files] = {}
    restored: RestoredStatus | None = None
    starts: int = 0
    writer: str = ""
    placed: dict[int, int] = {}
    offered: dict[str, PublishedPart] = {}
    marks: dict[str, Files] = {}
    newest_first: bool = False
    drain_until: float | None = None
    format: int = FORMAT


class Journal:
    """The record on disk.

    Raises:
        Corrupt, FormatTooNew: The file is not what this agent wrote.
    """

    def __init__(self, control: Path) -> None:
        control.mkdir(parents=True, exist_ok=True)
        self._path = control / "journal.json"
        self.record = JournalRecord()
        if self._path.exists():
            self.record = decode_document(self._path.read_bytes(), JournalRecord, FORMAT, str(self._path))
        self.record.writer = self.record.writer or uuid.uuid4().hex

    def save(self) -> None:
        """Replace the file. Durable against a kill of the process, not of the node: pods live in memory."""
        replace_file(self._path, msgspec.json.encode(self.record))
