"""What a restarted worker must know: whether the gate has opened, what is durable.

One small JSON document that is replaced as a whole, so that a kill at any moment leaves the old one or the
new one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from podferry.contract.api import DurableCheckpoint, Gate, RestoredStatus
from podferry.contract.documents import decode_document
from podferry.sidecar.snapshot import Identity

FORMAT = 1
Files = tuple[tuple[str, Identity], ...]


class Record(msgspec.Struct):
    """The journal's content.

    Attributes:
        gate: What the open gate said; set once, before anybody is let through.
        handled: The files of each checkpoint whose present version is durable or was restored.
        durable: What this agent made durable.
        restored: What training resumed from.
        starts: How often a worker has started.
    """

    gate: Gate | None = None
    handled: dict[str, Files] = {}
    durable: list[DurableCheckpoint] = []
    restored: RestoredStatus | None = None
    starts: int = 0
    format: int = FORMAT


class Journal:
    """The record on disk.

    Raises:
        Corrupt, FormatTooNew: The file is not what this agent wrote.
    """

    def __init__(self, control: Path) -> None:
        control.mkdir(parents=True, exist_ok=True)
        self._path = control / "journal.json"
        self.record = Record()
        if self._path.exists():
            self.record = decode_document(self._path.read_bytes(), Record, FORMAT, str(self._path))

    def save(self) -> None:
        """Replace the file. Durable against a kill of the process, not of the node: pods live in memory."""
        aside = self._path.with_suffix(".tmp")
        aside.write_bytes(msgspec.json.encode(self.record))
        aside.replace(self._path)
