"""The local copy of the dataset: whose it is, what it holds, how a file gets in.

Files are written aside and renamed in when whole, so whatever has its name in the stage is whole. The claim,
a file outside of the stage, lists what is ours: that alone is ever trimmed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from podferry.contract.errors import Corrupt, Refused
from podferry.contract.file_names import case_clashes
from podferry.contract.manifest import Entry, Manifest
from podferry.sidecar.staging.file_ops import (
    NO_FILE,
    PARTIAL_DIR,
    contents,
    create,
    prune,
    umask_now,
    write_all,
)
from podferry.sidecar.staging.ownership import OwnershipRecord, boot_id, read_ownership, write_ownership

OVERLAP_DIR = "ahead-"
"""Begins the name of a directory aside, which ends with its process: what came before there was a claim."""
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
OF = "~"
"""Between a process and the number of a file that it grows: what it leaves when killed, nobody can use."""


class StagingDir:
    """A directory that becomes a dataset.

    Args:
        root: The directory.
        claims: Where it is noted what fills it.
        file_mode: Permissions of its files.
    """

    def __init__(self, root: Path, claims: Path, file_mode: int = FILE_MODE) -> None:
        self.root = root
        self.file_mode = file_mode
        self.aside = root / PARTIAL_DIR
        self._root, self._aside = str(root), str(self.aside)
        self._claims = claims
        self._locked: TextIO | None = None
        self._ahead: Path | None = None
        self._umask = umask_now()
        self._made = {""}
        # A helper that outlives its agent for a moment must not write into what the next one grows.
        self._own = f"{os.getpid()}{OF}"

    def claim(self, manifest: Manifest, ours: frozenset[str] = frozenset()) -> frozenset[str]:
        """Make the stage this manifest's; the names that it already holds whole.

        What an earlier start fetched for another manifest is trimmed. Nothing else is ever deleted. Of the
        same manifest also what had come in part stays, aside.

        Args:
            manifest: What it is to hold.
            ours: Names besides those of the last claim that podferry wrote.

        Raises:
            Refused: It holds files of somebody else, another agent is using it, or it cannot be written.
        """
        _refuse_own_names(manifest)
        try:
            self._lock()
            before, boot = read_ownership(self._claims), boot_id()
            whole = self._sort_out(manifest, before, ours)
            write_ownership(
                self._claims,
                OwnershipRecord(manifest.digest, frozenset(entry.name for entry in manifest.entries), boot),
            )
            self._sort_aside(same=(before.digest, before.boot) == (manifest.digest, boot))
            self._tell_folded(manifest)
        except OSError as error:
            remedy = "Check the directory and its permissions"
            raise Refused.of(f"the stage {self.root} cannot be used", str(error), remedy) from error
        self._made = {""}
        return whole

    def ahead(self) -> Path | None:
        """A directory aside for what comes before there is a claim, and keep other agents out.

        Only where nothing lies in the stage and none was claimed before: what of that stays, a claim tells.

        Returns:
            The directory, empty; None where there is to be none.

        Raises:
            Refused: Another agent is using the stage.
        """
        try:
            self._lock()
            if read_ownership(self._claims).names or any(contents(self._root)):
                return None
            shutil.rmtree(self.aside, ignore_errors=True)
            ahead = self.aside / f"{OVERLAP_DIR}{os.getpid()}"
            (ahead / PARTIAL_DIR).mkdir(parents=True)
        except OSError:  # `claim` says why
            return None
        self._ahead = ahead
        return ahead

    def close(self) -> None:
        """Let other agents have the stage."""
        if self._locked is not None:
            self._locked.close()
            self._locked = None

    def _lock(self) -> None:
        """Keep other agents out until this process ends."""
        if self._locked is not None:
            return
        self._claims.mkdir(parents=True, exist_ok=True)
        file = (self._claims / "lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            remedy = "Wait for it to end, or choose another path"
            raise Refused.of(f"another podferry is using the stage {self.root}", remedy=remedy) from None
        self._locked = file

    def drop_ahead(self) -> None:
        """Remove what came before there was a claim, and has no name yet."""
        if self._ahead is not None:
            shutil.rmtree(self._ahead, ignore_errors=True)
            self._ahead = None

    def _sort_aside(self, *, same: bool) -> None:
        """Keep what grew for the same manifest, and came ahead of it; what others left nobody can use."""
        self.aside.mkdir(exist_ok=True)
        for left in self.aside.iterdir():
            if left != self._ahead and (not same or OF in left.name or left.name.startswith(OVERLAP_DIR)):
                _remove(left)

    def _tell_folded(self, manifest: Manifest) -> None:
        """Refuse names that are one file here: where the case of letters does not count, as on a Mac."""
        if (self.root / PARTIAL_DIR.upper()).exists():
            Corrupt.raise_any(case_clashes([entry.name for entry in manifest.entries]))

    def _sort_out(self, manifest: Manifest, claim: OwnershipRecord, ours: frozenset[str]) -> frozenset[str]:
        """Trim what is ours and not wanted; the names of what is wanted and whole."""
        names = claim.names | ours
        held = dict(contents(self._root))
        same = claim.digest == manifest.digest
        # The trainer may keep a cache of its own beside the files of the same dataset, but no link:
        # writing below one would leave the stage.
        foreign = [
            name for name, size in held.items() if name not in names and not (same and size != NO_FILE)
        ]
        if foreign:
            self._refuse(sorted(foreign))
        wanted = {entry.name: entry.size for entry in manifest.entries} if same else {}
        whole = frozenset(name for name, size in held.items() if wanted.get(name) == size)
        self.trim(names & held.keys() - whole)
        return whole

    def trim(self, names: Iterable[str]) -> None:
        """Remove files that podferry wrote, and the directories that are empty without them."""
        for name in names:
            (self.root / name).unlink(missing_ok=True)
            prune(self.root, name)

    def _refuse(self, names: list[str]) -> None:
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise Refused.of(
            f"the stage {self.root} holds files of another run",
            f"{len(names):,} file{'s' * (len(names) != 1)}: {shown}",
            "Empty it, or choose another dataset path",
        )

    def grow(self, number: int | str) -> Path:
        """An empty file aside, under a number of this process or a name; what was there is forgotten."""
        path = self.aside / (number if isinstance(number, str) else f"{self._own}{number}")
        os.close(create(str(path)))
        return path

    def write(self, path: Path, data: memoryview, start: int) -> None:
        """Write all of `data` at an offset of a file aside. Safe in threads.

        Raises:
            OSError: ENOSPC where the volume is full.
        """
        descriptor = os.open(path, os.O_WRONLY)
        try:
            write_all(descriptor, data, start)
        finally:
            os.close(descriptor)

    def admit(self, path: Path, entry: Entry) -> None:
        """Rename a whole file in under its own name."""
        path.chmod(self.file_mode)
        self.move_in(str(path), entry.name)

    def put(self, number: int, data: memoryview, entry: Entry) -> None:
        """`grow`, `write` and `admit` in one, for a small file: half of the system calls, and no `Path`.

        Raises:
            OSError: As `write`.
        """
        path = f"{self._aside}/{self._own}{number}"
        descriptor = create(path, self.file_mode)
        try:
            write_all(descriptor, data, 0)
            if self.file_mode & self._umask:
                os.fchmod(descriptor, self.file_mode)
        finally:
            os.close(descriptor)
        self.move_in(path, entry.name)

    def move_in(self, path: str, name: str) -> None:
        """Give a whole file aside its name."""
        self._make(name.rpartition("/")[0])
        os.rename(path, f"{self._root}/{name}")  # noqa: PTH104 - as in `put`

    def _make(self, directory: str) -> None:
        """Make a directory of the stage and those above it, once."""
        if directory in self._made:
            return
        self._make(directory.rpartition("/")[0])
        path = self.root / directory
        if not path.is_dir():
            path.mkdir(exist_ok=True)  # another process of this prefetch may have been quicker
            path.chmod(stat.S_IMODE(path.stat().st_mode) | DIRECTORY_MODE)  # whatever the umask is
        self._made.add(directory)

    def finish(self) -> None:
        """Nothing grows any more: remove what is aside."""
        shutil.rmtree(self.aside, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _refuse_own_names(manifest: Manifest) -> None:
    for entry in manifest.entries:
        if entry.name.partition("/")[0].casefold() == PARTIAL_DIR:
            what = f"a dataset must not hold {PARTIAL_DIR}: the name is podferry's own"
            raise Refused.of(what, repr(entry.name), "Remove it at its source")
