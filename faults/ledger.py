"""What the oracle compares: what trainers noted, what was found whole, what is broken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Content = dict[str, tuple[int, str]]
"""Size and SHA-256 of each file, by its name."""
POINTERS = frozenset({"checkpoint", "latest"})
"""What a trainer rewrites to name its newest save; all data of the older one is elsewhere."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        figure: `wrong` (an incomplete or wrong checkpoint is sure, or was restored), `lost` (a commit has
            gone, or the newest sure one was not restored), `claimed` (said to be durable or sure, and not),
            `stuck` (healthy again, and still no end), `crashed` (the agent ended by an error of its own),
            `left` (not drained, with time enough).
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
        sure: Whether it says so, or was confirmed.
    """

    sequence: int
    step: int
    raw: bytes
    writer: str
    content: Content
    sure: bool = True


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


def all_saved(events: Iterable[Mapping[str, Any]]) -> set[tuple[str, tuple[int, str]]]:
    """Each file of a finished save, with what was in it."""
    finished = (event for event in events if event["event"] == "finish")
    return {seen for event in finished for held in contents(event) for seen in held.items()}


def noted_step(content: Content, finished: Iterable[Mapping[str, Any]]) -> int | None:
    """The step of the `finish` whose checkpoint a content is, None where it is none's."""
    for event in finished:
        held = contents(event)
        if content in held or content in map(_without_pointers, held):
            return int(event["step"])
    return None


def _without_pointers(held: Content) -> Content:
    """A save as it is once the trainer's own pointer names the next one, unseen by any worker."""
    return {name: seen for name, seen in held.items() if name not in POINTERS}
