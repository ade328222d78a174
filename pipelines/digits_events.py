"""Progress events of the digits training: one JSON object per line on standard output.

Times are seconds since the epoch, durations are seconds.
"""

from __future__ import annotations

import sys

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="digits", kw_only=True):
    """The base of all events.

    Attributes:
        at: Time of the event.
    """

    at: float


class Opened(Event, frozen=True, tag="opened"):
    """The gate is open: the dataset is staged and the checkpoint restored.

    Attributes:
        pid: The training process.
        lineage: The lineage of the checkpoints.
        stage: Directory of the dataset.
        files: Number of files; bytes: their total size.
        kept: How many of them an earlier run had already staged.
        prefetch: Duration of the prefetch.
        restored: The checkpoint to resume from, or None.
        restore: Duration of the restore.
        epoch: Completed epochs.
    """

    pid: int
    lineage: str
    stage: str
    files: int
    bytes: int
    kept: int
    prefetch: float
    restored: str | None
    restore: float
    epoch: int


class Began(Event, frozen=True, tag="began"):
    """An epoch starts; the first has the number 1."""

    epoch: int


class Trained(Event, frozen=True, tag="trained"):
    """An epoch is complete."""

    epoch: int
    loss: float


class Saved(Event, frozen=True, tag="saved"):
    """A checkpoint is written.

    Attributes:
        name: Name of the checkpoint: its file name without the suffix.
        blocked: Time for which training was blocked.
    """

    name: str
    blocked: float


class Left(Event, frozen=True, tag="left"):
    """Training has ended, and all checkpoints are durable.

    Attributes:
        blocked: Time spent waiting for durability.
        accuracy: Share of test images classified correctly.
    """

    blocked: float
    accuracy: float


AnyEvent = Opened | Began | Trained | Saved | Left
EVENT_PREFIX = b'{"digits":'


def publish(event: AnyEvent) -> None:
    """Print an event in one write, so that other output on the same pipe does not mix with it."""
    sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
    sys.stdout.flush()


def read_event(line: bytes) -> AnyEvent | None:
    """Parse the event in a line of a log, or return None for other text."""
    text = line.strip()
    return msgspec.json.decode(text, type=AnyEvent) if text.startswith(EVENT_PREFIX) else None
