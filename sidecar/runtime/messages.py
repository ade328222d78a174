"""Messages on standard error: problems, notes and warnings. Loads little, for the verbs that start fast."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from podferry.sidecar.runtime.colours import coloured

if TYPE_CHECKING:
    from podferry.contract.errors import Problem

LEVELS = {"red": "error", "yellow": "warning", "": "info"}
"""What a colour means, in JSON."""
SETTINGS = {"json": False, "quiet": False}
"""Set once, by a process that has such options."""


def configure_messages(log_format: str, *, quiet: bool) -> None:
    """Choose "text" or "json" lines, and whether notes are left out."""
    SETTINGS.update(json=log_format == "json", quiet=quiet)


def print_problems(problems: Sequence[Problem], colour: str = "red") -> None:
    """Print problems, one per line; in yellow those that are only doubts."""
    for problem in problems:
        print_message(f"podferry: {problem}", colour)


def print_message(text: str, colour: str = "") -> None:
    """Print a line; standard output gets only results, so that a pipe receives nothing else.

    Without a colour it is a note. Nothing happens if it cannot be written, such as on a terminal that was
    closed: the exit code counts.
    """
    if SETTINGS["quiet"] and not colour:
        return
    with suppress(OSError, ValueError):
        sys.stderr.write(message_line(text, colour))
        sys.stderr.flush()


def message_line(text: str, colour: str = "") -> str:
    """The same as a line with its end, for who writes it otherwise."""
    return f"{_json_line(text, LEVELS[colour]) if SETTINGS['json'] else coloured(text, colour, sys.stderr)}\n"


def _json_line(text: str, level: str) -> str:
    """The same fields as in the agent's log."""
    import json  # noqa: PLC0415 - most processes print text
    from datetime import UTC, datetime  # noqa: PLC0415

    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": text.removeprefix("podferry: "), "level": level, "timestamp": now})
