"""Renders a log entry for people: `podferry: 14:03:07 checkpoint durable: step-1, 2.0 GiB, 3.1 s`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TextIO

from podferry.contract.quantity import format_bytes
from podferry.sidecar.runtime.colours import coloured

COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}
SENTENCES = ("reason", "reasons", "problems", "doubts")
"""Fields that are sentences: they end the line, each as it is."""
Entry = MutableMapping[str, Any]


def text_renderer(stream: TextIO) -> Callable[[object, str, Entry], str]:
    """A processor for structlog that renders an entry as one line for a stream, with the local time."""

    def render(_: object, level: str, entry: Entry) -> str:
        entry.pop("level", None)
        exception = entry.pop("exception", "")
        line = f"podferry: {time.strftime('%H:%M:%S')} {_sentence(entry)}"
        line = f"{line}\n{exception}" if exception else line
        return coloured(line, COLOURS.get(level, ""), stream)

    return render


def _sentence(entry: Entry) -> str:
    event = entry.pop("event")
    endings = [str(text) for name in SENTENCES for text in _listed(entry.pop(name, ()))]
    name = str(entry.pop("name", ""))
    values = [text for field, value in entry.items() for text in _value(field, value)]
    details = ", ".join(filter(None, [name, *values]))
    return ": ".join(filter(None, [event, details, " ".join(endings)]))


def _listed(value: Any) -> Iterator[Any]:
    yield from value if isinstance(value, list | tuple) else [value]


def _value(field: str, value: Any) -> Iterator[str]:
    """A field as words, with its unit; nothing for a value that says nothing."""
    words = field.replace("_", " ")
    if value is None or value in ("", [], ()):
        return
    if field == "bytes":
        yield format_bytes(value)
    elif field.endswith("bytes"):
        yield f"{words.removesuffix('bytes').strip()} {format_bytes(value)}"
    elif field == "bytes_per_second":
        yield f"{format_bytes(value)}/s"
    elif field == "seconds":
        yield f"{value} s"
    elif field == "files" and isinstance(value, int):
        yield f"{value:,} file{'s' * (value != 1)}"
    else:
        listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        yield f"{words} {listed}"
