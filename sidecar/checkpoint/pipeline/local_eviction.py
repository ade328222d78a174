"""Chooses and removes local checkpoints: durable ones, oldest first."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from podferry.contract.destination.kind import by_kind
from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.pointer_files import POINTER_BYTES, POINTERS, read_links, read_small
from podferry.sidecar.runtime.file_identity import FileIdentity

log = structlog.get_logger(__name__)


def evictable(
    durable: Sequence[DurableCheckpoint], present: Mapping[str, Candidate], keep: int, pointer_text: str
) -> list[Candidate]:
    """Which of the checkpoints in the directory may be evicted, oldest first.

    `durable` are the newest commits of those whose present version is durable, oldest first. The newest
    `keep` of each kind stay, and the newest that is sure: what follows it may turn out to be incomplete. One
    that is named in `pointer_text`, the text of the trainer's small files, stays too.
    """
    local = [one for one in durable if one.name in present]
    kept = {
        one.name
        for same in by_kind(local)
        for one in [*same[-max(keep, 1) :], *[one for one in same if not one.doubts][-1:]]
    }
    old = [one.name for one in local if one.name not in kept and one.name not in pointer_text]
    # Small ones free nothing, and a trainer's pointer of any name is one of them.
    return [present[name] for name in old if present[name].bytes > POINTER_BYTES]


def pointer_text(root: Path, present: Mapping[str, Candidate]) -> str:
    """The text of small files and links at the top of the directory, where trainers keep their own pointers.

    A small file that belongs to a checkpoint of several files may well name that one; known pointers, which
    belong to the checkpoint that they name, count all the same.
    """
    names = [
        name
        for candidate in present.values()
        for name, seen in candidate.files
        if seen.size <= POINTER_BYTES and "/" not in name and (name in POINTERS or len(candidate.files) == 1)
    ]
    return "\n".join([*read_small(root, names).values(), *read_links(root).values()])


def evict(root: Path, candidate: Candidate) -> bool:
    """Remove a checkpoint's files and the directories that become empty; returns whether it was removed.

    A checkpoint that has changed stays complete.
    """
    if any(not _unchanged(root / name, seen) for name, seen in candidate.files):
        return False
    log.info("evicting a checkpoint", name=candidate.name, bytes=candidate.bytes)
    try:
        for name, seen in candidate.files:
            if _unchanged(root / name, seen):
                (root / name).unlink()
    except OSError as error:
        log.warning("a checkpoint cannot be evicted", name=candidate.name, reason=str(error))
        return False
    parents = {path for name, _ in candidate.files for path in (root / name).parents if root in path.parents}
    for directory in sorted(parents, key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):  # not empty: it has files of others
            directory.rmdir()
    return True


def _unchanged(path: Path, seen: FileIdentity) -> bool:
    try:
        return FileIdentity.of(path.stat(follow_symlinks=False)) == seen
    except (FileNotFoundError, NotADirectoryError):
        return False
