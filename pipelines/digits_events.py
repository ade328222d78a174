"""What the training of the digits says of itself: one JSON object a line on standard output.

Times are seconds since the epoch, durations are seconds.
"""

from __future__ import annotations

import sys

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="digits", kw_only=True):
    """Anything that is said.

    Attributes:
        at: When.
    """

    at: float


class Opened(Event, frozen=True, tag="opened"):
    """The gate is open: the dataset is whole and what training resumes from is there.

    Attributes:
        pid: The process that trains.
        lineage: Which attempts belong together.
        stage: Where the dataset lies.
        files: How many files it has; bytes: their sum.
        prefetch: How long fetching them took.
        restored: The checkpoint that training resumes from, None where it starts anew.
        restore: How long bringing it back took.
        epoch: Epochs that are done.
    """

    pid: int
    lineage: str
    stage: str
    files: int
    bytes: int
    prefetch: float
    restored: str | None
    restore: float
    epoch: int


class Began(Event, frozen=True, tag="began"):
    """An epoch begins; the first has the number 1."""

    epoch: int


class Trained(Event, frozen=True, tag="trained"):
    """An epoch is over."""

    epoch: int
    loss: float


class Saved(Event, frozen=True, tag="saved"):
    """A checkpoint is written.

    Attributes:
        name: What the agent calls it: its file's name without the suffix.
        blocked: How long training stood still for it.
    """

    name: str
    blocked: float


class Left(Event, frozen=True, tag="left"):
    """Training is over, and all checkpoints are durable.

    Attributes:
        blocked: How long it waited for that.
        accuracy: Share of the test images that are named correctly.
    """

    blocked: float
    accuracy: float


AnyEvent = Opened | Began | Trained | Saved | Left
MARK = b'{"digits":'


def publish(event: AnyEvent) -> None:
    """Say it in one write: lines of other processes on the same pipe do not mix with it."""
    sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
    sys.stdout.flush()


def read_event(line: bytes) -> AnyEvent | None:
    """The event in a line of a log, None where it holds another text."""
    text = line.strip()
    return msgspec.json.decode(text, type=AnyEvent) if text.startswith(MARK) else None
