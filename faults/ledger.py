"""What the oracle compares: what trainers noted, what was found whole, what is broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Content = dict[str, tuple[int, str]]
"""Size and SHA-256 of each file, by its name."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        figure: `wrong` (an incomplete or wrong checkpoint is offered for restore), `lost` (the last good
            commit), `claimed` (said to be durable, and not), `stuck` (healthy again, and still no end),
            `crashed` (the agent ended by an error of its own), `left` (not drained, with time enough).
        what: For people.
    """

    figure: str
    what: str


@dataclass(frozen=True, slots=True)
class Good:
    """A commit that was found whole.

    Attributes:
        sequence: Its number.
        step: Of the save that it holds.
        raw: The document.
        writer: Of the agent.
        content: What is in it.
    """

    sequence: int
    step: int
    raw: bytes
    writer: str
    content: Content


@dataclass(slots=True)
class Ledger:
    """What the trainers of an episode noted."""

    path: Path

    def events(self) -> list[dict[str, Any]]:
        """All complete lines; the last one may be half written, across a page boundary."""
        data = self.path.read_bytes() if self.path.exists() else b""
        return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]

    def count(self, event: str) -> int:
        """How many of a kind there are."""
        return sum(found["event"] == event for found in self.events())


def contents(finished: Mapping[str, Any]) -> list[Content]:
    """The checkpoints of a `finish`."""
    return [
        {name: (size, digest) for name, (size, digest) in held.items()} for held in finished["checkpoints"]
    ]
