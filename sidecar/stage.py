"""The local copy of the dataset: whose it is, what it holds, how a file gets in.

Files are written aside and renamed in when whole, so whatever has its name in the stage is whole. The claim,
a file outside of the stage, is made while the stage is empty: from then on all that it holds is ours to trim.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import TextIO

from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.snapshot import scan

ASIDE = ".podferry-partial"
"""Where files grow, on the stage's own file system; gone when the stage is whole."""


class Stage:
    """A directory that becomes a dataset."""

    def __init__(self, root: Path, claims: Path) -> None:
        self.root = root
        self.aside = root / ASIDE
        self._claims = claims
        self._locked: TextIO | None = None

    def claim(self, manifest: Manifest) -> frozenset[str]:
        """Make the stage this manifest's; the names that it already holds whole.

        What an earlier start fetched for another manifest is trimmed. Nothing else is ever deleted.

        Raises:
            Refused: It holds files of somebody else, or another agent is using it.
        """
        self._claims.mkdir(parents=True, exist_ok=True)
        self._lock()
        record = self._claims / "claim"
        claimed = record.read_text() if record.exists() else None
        held = self._held()
        if claimed is None and held:
            self._refuse(sorted(held))
        wanted = {entry.name: entry.size for entry in manifest.entries}
        whole = {
            name for name, size in held.items() if claimed == manifest.digest and wanted.get(name) == size
        }
        for name in held.keys() - whole:
            (self.root / name).unlink()
        shutil.rmtree(self.aside, ignore_errors=True)
        aside = record.with_suffix(".tmp")
        aside.write_text(manifest.digest)
        aside.replace(record)
        self.aside.mkdir()
        return frozenset(whole)

    def close(self) -> None:
        """Let other agents in."""
        if self._locked is not None:
            self._locked.close()
            self._locked = None

    def _lock(self) -> None:
        """Keep other agents out until `close`, or until this process ends."""
        if self._locked is not None:
            return
        self._locked = (self._claims / "lock").open("w")
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "Wait for it to end, or choose another dataset path"
            raise Refused.of(f"another podferry is using the stage {self.root}", remedy=remedy) from None

    def _held(self) -> dict[str, int]:
        names = scan(self.root)
        return {name: seen.size for name, seen in names.items() if not name.startswith(ASIDE + "/")}

    def _refuse(self, names: list[str]) -> None:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise Refused.of(
            f"the stage {self.root} holds files of another run",
            f"{len(names):,} files: {shown}",
            "Empty it, or choose another dataset path",
        )

    def grow(self, number: int, size: int) -> Path:
        """An empty file aside, with room for `size` bytes.

        Raises:
            OSError: ENOSPC where the volume has no room; tmpfs and ext4 reserve at once.
        """
        path = self.aside / str(number)
        with path.open("xb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        return path

    def admit(self, path: Path, entry: Entry, mode: int = 0o644) -> None:
        """Rename a whole file in under its own name."""
        target = self.root / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        path.rename(target)

    def finish(self) -> None:
        """The stage is whole: nothing is aside any more."""
        shutil.rmtree(self.aside, ignore_errors=True)
