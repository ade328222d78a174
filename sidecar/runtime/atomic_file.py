"""Replaces a small file in one step, so that a reader sees the old content or the new, never a part."""

from __future__ import annotations

from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write `<stem>.tmp`, rename it; raises `OSError`. Survives a kill of the process, not of the node."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
