"""Writes a container's termination message, which Kubernetes shows in the pod's status."""

from __future__ import annotations

import sys
from pathlib import Path

TERMINATION_LOG = Path("/dev/termination-log")
MAX_MESSAGE_BYTES = 4096
"""Kubernetes keeps this much of a termination message."""


def leave_message(text: str, path: Path = TERMINATION_LOG) -> None:
    """Write a message if Kubernetes has created the file; longer ones are truncated."""
    try:
        if path.exists():
            path.write_bytes(text.encode()[:MAX_MESSAGE_BYTES])
    except OSError as error:
        sys.stderr.write(f"{path} cannot be written: {error}\n")
