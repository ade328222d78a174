"""Keeps what is being uploaded from changing or going under the uploader.

A hard link survives unlinking and replacing by rename. An overwrite in place reaches it, so every reader of
a pin compares identities and fingerprints besides.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import structlog

from podferry.contract.errors import Changed
from podferry.sidecar.complete import Candidate, candidate_name
from podferry.sidecar.snapshot import Identity, scan

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pinned:
    """A candidate whose files are held.

    Attributes:
        candidate: Its names, and the identities that the held files must keep.
        folder: Where they are held, each under its own name.
        completed_at: When it was found whole, seconds since the epoch.
    """

    candidate: Candidate
    folder: Path
    completed_at: float

    def release(self) -> None:
        """Let the files go."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Pins:
    """The folder of all pins: numbered, each made aside and renamed in, so that a kill leaves whole ones."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._next = 1 + max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)

    def adopt(self) -> list[Pinned]:
        """What an earlier worker held, oldest first: the trainer may have removed the originals since."""
        for aside in self.folder.glob("*.aside"):
            shutil.rmtree(aside)
        held = []
        for folder in sorted(self.folder.iterdir(), key=lambda path: int(path.name)):
            files = tuple(sorted(scan(folder).items()))
            if files:
                held.append(
                    Pinned(Candidate(candidate_name(files[0][0]), files), folder, folder.stat().st_mtime)
                )
        return held

    def pin(self, candidate: Candidate, root: Path, now: float) -> Pinned:
        """Hold a candidate's files.

        Raises:
            Changed: One of them is no longer what the candidate says.
        """
        folder = self.folder / f"{self._next}"
        aside = folder.with_suffix(".aside")
        self._next += 1
        try:
            files = tuple(
                (name, _hold(root / name, aside / name, identity)) for name, identity in candidate.files
            )
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        aside.rename(folder)
        return Pinned(Candidate(candidate.name, files), folder, now)


def _hold(source: Path, target: Path, expected: Identity) -> Identity:
    """Link, or copy where the file system has no links; the identity of what is held."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(source, target, follow_symlinks=False)
        except PermissionError as error:
            log.warning("no hard link: holding a copy", file=str(source), reason=str(error))
            shutil.copyfile(source, target)
        found = Identity.of(source.stat())
    except FileNotFoundError:
        raise Changed.of(f"{source} went while it was being pinned") from None
    if found != expected:
        raise Changed.of(f"{source} changed while it was being pinned", f"{expected} became {found}")
    return Identity.of(target.stat())
