"""The last words of a container, where Kubernetes looks for them."""

from __future__ import annotations

import sys
from pathlib import Path

TERMINATION_LOG = Path("/dev/termination-log")
MAX_MESSAGE_BYTES = 4096
"""Bytes of a termination message that Kubernetes keeps."""


def leave_message(text: str, place: Path = TERMINATION_LOG) -> None:
    """Leave a message, cut to what is kept. Kubernetes makes the file; elsewhere none is wanted."""
    try:
        if place.exists():
            place.write_bytes(text.encode()[:MAX_MESSAGE_BYTES])
    except OSError as error:
        sys.stderr.write(f"{place} cannot be written: {error}\n")
