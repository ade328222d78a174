"""JSON: one document, which shows its end, or one per line, of which the last may be missing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from podferry.sidecar.checkpoint.detect.formats.verdict import (
    COMPLETE,
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
    Torn,
)

MAX_BYTES = 64 << 20
"""Bytes to parse, which takes a few tenths of a second; larger documents are inconclusive."""
MAX_SLOW_BYTES = 8 << 20
"""Bytes to parse with the standard library, for numbers such as NaN that Python writes and JSON lacks."""
NO_END = "it is not a complete JSON document"


def json_verdict(path: Path) -> FormatVerdict:
    """One JSON document, or one per line: this suffix is used for both.

    Raises:
        Torn: It ends inside a document.
        Inconclusive: It is too large.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Inconclusive
    if _is_document(data):
        return COMPLETE
    if _is_lines(data):
        return INCONCLUSIVE
    raise Torn(NO_END)


def _is_document(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # checks the syntax, builds nothing
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _is_python_document(data)
    return True


def _is_python_document(data: bytes) -> bool:
    if len(data) > MAX_SLOW_BYTES:
        raise Inconclusive
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _is_lines(data: bytes) -> bool:
    lines = [line for line in data.splitlines() if line.strip()]
    return len(lines) > 1 and all(map(_is_document, lines))
