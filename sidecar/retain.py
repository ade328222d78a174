"""Frees local checkpoints: only durable ones, only under pressure, oldest first."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from podferry.sidecar.complete import Candidate

log = structlog.get_logger(__name__)

POINTER_BYTES = 4096
"""A file up to this size may be a trainer's own pointer (`latest`, `checkpoint`) to a checkpoint's name."""


def pressed(root: Path, share: float) -> bool:
    """Whether more than `share` of the volume is in use."""
    usage = shutil.disk_usage(root)
    return usage.used > share * usage.total


def expendable(
    durable: Sequence[str], present: Mapping[str, Candidate], keep: int, pointed: str
) -> list[Candidate]:
    """Which checkpoints may go, oldest first.

    Args:
        durable: Names of those whose present version is durable, oldest first.
        present: What lies in the directory, by name.
        keep: How many of the newest durable ones stay.
        pointed: The text of the trainer's small files: a checkpoint that it names stays.
    """
    lying = [name for name in durable if name in present]
    old = lying[: max(len(lying) - max(keep, 1), 0)]
    return [present[name] for name in old if name not in pointed]


def pointers(root: Path, present: Mapping[str, Candidate]) -> str:
    """The text of all small files at the top of the directory."""
    names = [
        name for candidate in present.values() for name, seen in candidate.files if seen.size <= POINTER_BYTES
    ]
    texts = []
    for name in names:
        try:
            texts.append((root / name).read_bytes().decode(errors="replace"))
        except FileNotFoundError:
            continue
    return "\n".join(texts)


def free(root: Path, candidate: Candidate) -> None:
    """Remove a checkpoint's files, and its directory where nothing else is left in it."""
    log.info("freeing a durable checkpoint", name=candidate.name, bytes=candidate.bytes)
    for name, _ in candidate.files:
        (root / name).unlink(missing_ok=True)
    folders = {
        folder for name, _ in candidate.files for folder in (root / name).parents if root in folder.parents
    }
    for folder in sorted(folders, key=lambda path: -len(path.parts)):
        if not any(folder.iterdir()):
            folder.rmdir()
