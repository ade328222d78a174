"""The last words of a container, where Kubernetes looks for them."""

from __future__ import annotations

import sys
from pathlib import Path

TERMINATION_LOG = Path("/dev/termination-log")
LONGEST_MESSAGE = 4096
"""Bytes of a termination message that Kubernetes keeps."""


def leave_message(text: str, place: Path = TERMINATION_LOG) -> None:
    """Leave a message, cut to what is kept. Kubernetes makes the file; elsewhere none is wanted."""
    try:
        if place.exists():
            place.write_bytes(text.encode()[:LONGEST_MESSAGE])
    except OSError as error:
        sys.stderr.write(f"{place} cannot be written: {error}\n")
