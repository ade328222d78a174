"""The local copy of the dataset: who owns it, and which of its files are kept.

The ownership record, a file outside of the stage, lists what podferry has written: only that is ever deleted.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from podferry.contract.errors import Corrupt, Refused
from podferry.contract.file_names import case_clashes
from podferry.contract.manifest import Manifest, first_names
from podferry.sidecar.staging.file_ops import (
    NOT_A_FILE,
    PARTIAL_DIR,
    list_files,
    remove_empty_parents,
    remove_tree,
)
from podferry.sidecar.staging.ownership_record import (
    OwnershipRecord,
    boot_id,
    read_ownership,
    write_ownership,
)
from podferry.sidecar.staging.stage_writer import FILE_MODE, PID_SEPARATOR, StageWriter

OVERLAP_PREFIX = "ahead-"
"""Of the directory for files fetched before the stage is claimed; no other process can use it."""


class StagingDir(StageWriter):
    """A directory that becomes a dataset. Calls: 1. `make_overlap_dir` (optional), 2. `claim`, 3. `close`.

    Args:
        root: The directory.
        ownership_dir: Holds its lock and its ownership record.
        file_mode: Permissions of its files.
    """

    def __init__(self, root: Path, ownership_dir: Path, file_mode: int = FILE_MODE) -> None:
        super().__init__(root, file_mode)
        self._ownership_dir = ownership_dir
        self._lock_file: TextIO | None = None
        self._overlap_dir: Path | None = None

    def claim(self, manifest: Manifest, also_owned: frozenset[str] = frozenset()) -> frozenset[str]:
        """Take the stage for this manifest; the names of its files that are already complete.

        Deletes what an earlier start fetched for another manifest, and nothing else. Partial files for the
        same manifest are kept.

        Args:
            manifest: What the stage is to hold.
            also_owned: Names that podferry wrote and the last ownership record does not list.

        Raises:
            Refused: It holds other files, another agent is using it, or it cannot be written.
        """
        _refuse_reserved_names(manifest)
        try:
            self._lock()
            last, boot = read_ownership(self._ownership_dir), boot_id()
            kept = self._delete_unwanted(manifest, last, also_owned)
            names = frozenset(entry.name for entry in manifest.entries)
            write_ownership(self._ownership_dir, OwnershipRecord(manifest.digest, names, boot))
            self._delete_partials(resumable=(last.digest, last.boot) == (manifest.digest, boot))
            self._refuse_case_clashes(manifest)
        except OSError as error:
            remedy = "Check the directory and its permissions"
            raise Refused.of(f"the stage {self.root} cannot be used", str(error), remedy) from error
        self._directories = {""}
        return kept

    def make_overlap_dir(self) -> Path | None:
        """Lock the stage and make a directory for files that are fetched before it is claimed.

        Returns:
            The empty directory, or None if the stage has files or an owner: only a claim decides on those.

        Raises:
            Refused: Another agent is using the stage.
        """
        try:
            self._lock()
            if read_ownership(self._ownership_dir).names or any(list_files(self._root)):
                return None
            self.remove_partials()
            directory = self.partial_dir / f"{OVERLAP_PREFIX}{os.getpid()}"
            (directory / PARTIAL_DIR).mkdir(parents=True)
        except OSError:  # `claim` reports it
            return None
        self._overlap_dir = directory
        return directory

    def remove_overlap_dir(self) -> None:
        """Remove the files that were fetched before the claim and have not been renamed."""
        if self._overlap_dir is not None:
            remove_tree(self._overlap_dir)
            self._overlap_dir = None

    def delete(self, names: Iterable[str]) -> None:
        """Delete files that podferry wrote, and the directories that this leaves empty."""
        for name in names:
            (self.root / name).unlink(missing_ok=True)
            remove_empty_parents(self.root, name)

    def close(self) -> None:
        """Unlock the stage."""
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def _lock(self) -> None:
        """Lock the stage until `close`, or until this process ends."""
        if self._lock_file is not None:
            return
        self._ownership_dir.mkdir(parents=True, exist_ok=True)
        file = (self._ownership_dir / "lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            remedy = "Wait for it to end, or choose another path"
            raise Refused.of(f"another podferry is using the stage {self.root}", remedy=remedy) from None
        self._lock_file = file

    def _delete_unwanted(
        self, manifest: Manifest, last: OwnershipRecord, also_owned: frozenset[str]
    ) -> frozenset[str]:
        """Delete our files that are not wanted or incomplete; the names of the others."""
        owned = last.names | also_owned
        present = dict(list_files(self._root))
        same = last.digest == manifest.digest
        # The trainer may keep a cache of its own next to the files of the same dataset, but no link:
        # writing through one would leave the stage.
        foreign = [
            name for name, size in present.items() if name not in owned and not (same and size != NOT_A_FILE)
        ]
        if foreign:
            what = f"the stage {self.root} holds files of another run"
            measured = f"{len(foreign):,} file{'s' * (len(foreign) != 1)}: {first_names(sorted(foreign))}"
            raise Refused.of(what, measured, "Empty it, or choose another dataset path")
        wanted = {entry.name: entry.size for entry in manifest.entries} if same else {}
        kept = frozenset(name for name, size in present.items() if wanted.get(name) == size)
        self.delete(owned & present.keys() - kept)
        return kept

    def _delete_partials(self, *, resumable: bool) -> None:
        """Delete the partial files that cannot be resumed: of another manifest, or of a process."""
        self.partial_dir.mkdir(exist_ok=True)
        for path in self.partial_dir.iterdir():
            of_a_process = PID_SEPARATOR in path.name or path.name.startswith(OVERLAP_PREFIX)
            if path != self._overlap_dir and (not resumable or of_a_process):
                _remove(path)

    def _refuse_case_clashes(self, manifest: Manifest) -> None:
        """Refuse names that are one file on this file system because it ignores case, as on a Mac."""
        if (self.root / PARTIAL_DIR.upper()).exists():
            Corrupt.raise_any(case_clashes([entry.name for entry in manifest.entries]))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink()


def _refuse_reserved_names(manifest: Manifest) -> None:
    for entry in manifest.entries:
        if entry.name.partition("/")[0].casefold() == PARTIAL_DIR:
            what = f"a dataset must not hold {PARTIAL_DIR}: the name is podferry's own"
            raise Refused.of(what, repr(entry.name), "Remove it at its source")
