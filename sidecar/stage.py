"""The local copy of the dataset: whose it is, what it holds, how a file gets in.

Files are written aside and renamed in when whole, so whatever has its name in the stage is whole. The claim,
a file outside of the stage, lists what is ours: that alone is ever trimmed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import msgspec

from podferry.contract.documents import decode_document
from podferry.contract.errors import Corrupt, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.names import folded

ASIDE = ".podferry-partial"
"""Where files grow, on the stage's own file system; gone when the stage is whole."""
FORMAT = 1
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
OF = "~"
"""Between a process and the number of a file that it grows: what it leaves when killed, nobody can use."""
NO_FILE = -1
"""Stands for the size of what is neither a directory nor a regular file: a link, a pipe."""


class Claim(msgspec.Struct, frozen=True):
    """What fills the stage.

    Attributes:
        digest: The manifest's.
        names: Its files, relative to the stage: what a later start may trim.
        boot: Of which start of the machine: what it had written in part may be lost with its memory.
        format: Version of this document.
    """

    digest: str
    names: frozenset[str]
    boot: str = ""
    format: int = FORMAT


class Stage:
    """A directory that becomes a dataset.

    Args:
        root: The directory.
        claims: Where it is noted what fills it.
        file_mode: Permissions of its files.
    """

    def __init__(self, root: Path, claims: Path, file_mode: int = FILE_MODE) -> None:
        self.root = root
        self.file_mode = file_mode
        self.aside = root / ASIDE
        self._root, self._aside = str(root), str(self.aside)
        self._claims = claims
        self._locked: TextIO | None = None
        self._umask = _umask()
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
            self._claims.mkdir(parents=True, exist_ok=True)
            self._lock()
            before, boot = self._claimed(), _boot()
            whole = self._sort_out(manifest, before, ours)
            self._record(Claim(manifest.digest, frozenset(entry.name for entry in manifest.entries), boot))
            if (before.digest, before.boot) != (manifest.digest, boot):
                shutil.rmtree(self.aside, ignore_errors=True)
            self.aside.mkdir(exist_ok=True)
            for left in self.aside.glob(f"*{OF}*"):
                left.unlink()
            self._tell_folded(manifest)
        except OSError as error:
            remedy = "Check the directory and its permissions"
            raise Refused.of(f"the stage {self.root} cannot be used", str(error), remedy) from error
        self._made = {""}
        return whole

    def close(self) -> None:
        """Let other agents have the stage."""
        if self._locked is not None:
            self._locked.close()
            self._locked = None

    def _lock(self) -> None:
        """Keep other agents out until this process ends."""
        if self._locked is not None:
            return
        file = (self._claims / "lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            remedy = "Wait for it to end, or choose another path"
            raise Refused.of(f"another podferry is using the stage {self.root}", remedy=remedy) from None
        self._locked = file

    def _claimed(self) -> Claim:
        """What the last start claimed. A claim that cannot be read is none: then nothing is trimmed."""
        path = self._claims / "claim"
        try:
            return decode_document(path.read_bytes(), Claim, FORMAT, str(path))
        except (FileNotFoundError, Corrupt):
            return Claim("", frozenset())

    def _tell_folded(self, manifest: Manifest) -> None:
        """Refuse names that are one file here: where the case of letters does not count, as on a Mac."""
        if (self.root / ASIDE.upper()).exists():
            Corrupt.raise_any(folded([entry.name for entry in manifest.entries]))

    def _sort_out(self, manifest: Manifest, claim: Claim, ours: frozenset[str]) -> frozenset[str]:
        """Trim what is ours and not wanted; the names of what is wanted and whole."""
        names = claim.names | ours
        held = dict(_contents(str(self.root)))
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
        for name in names & held.keys() - whole:
            (self.root / name).unlink()
            _prune(self.root, name)
        return whole

    def _record(self, claim: Claim) -> None:
        aside = self._claims / "claim.tmp"
        aside.write_bytes(msgspec.json.encode(claim))
        aside.replace(self._claims / "claim")

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
        os.close(_create(str(path)))
        return path

    def write(self, path: Path, data: memoryview, start: int) -> None:
        """Write all of `data` at an offset of a file aside. Safe in threads.

        Raises:
            OSError: ENOSPC where the volume is full.
        """
        descriptor = os.open(path, os.O_WRONLY)
        try:
            _write_all(descriptor, data, start)
        finally:
            os.close(descriptor)

    def admit(self, path: Path, entry: Entry) -> None:
        """Rename a whole file in under its own name."""
        path.chmod(self.file_mode)
        self._rename(str(path), entry.name)

    def put(self, number: int, data: memoryview, entry: Entry) -> None:
        """`grow`, `write` and `admit` in one, for a small file: half of the system calls, and no `Path`.

        Raises:
            OSError: As `write`.
        """
        path = f"{self._aside}/{self._own}{number}"
        descriptor = _create(path, self.file_mode)
        try:
            _write_all(descriptor, data, 0)
            if self.file_mode & self._umask:
                os.fchmod(descriptor, self.file_mode)
        finally:
            os.close(descriptor)
        self._rename(path, entry.name)

    def _rename(self, path: str, name: str) -> None:
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


def _refuse_own_names(manifest: Manifest) -> None:
    for entry in manifest.entries:
        if entry.name.partition("/")[0].casefold() == ASIDE:
            what = f"a dataset must not hold {ASIDE}: the name is podferry's own"
            raise Refused.of(what, repr(entry.name), "Remove it at its source")


def _contents(root: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The name and size of everything that is no directory, what grows aside left out."""
    with os.scandir(root) as found:
        children = list(found)
    for child in children:
        name = prefix + child.name
        if child.is_dir(follow_symlinks=False):
            if name != ASIDE:
                yield from _contents(child.path, name + "/")
        else:
            regular = child.is_file(follow_symlinks=False)
            yield name, child.stat().st_size if regular else NO_FILE


def _prune(root: Path, name: str) -> None:
    """Remove the directories above a file that is gone, as far as they are empty."""
    parent = name.rpartition("/")[0]
    while parent:
        try:
            (root / parent).rmdir()
        except OSError:  # not empty, or gone already
            return
        parent = parent.rpartition("/")[0]


def _boot() -> str:
    """Which start of the machine this is; empty where the system does not tell (macOS)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _create(path: str, mode: int = 0o600) -> int:
    """A new file; what an attempt before left under its name is removed."""
    try:
        return os.open(path, NEW, mode)
    except FileExistsError:
        os.unlink(path)  # noqa: PTH108 - as in `put`
        return os.open(path, NEW, mode)


def _umask() -> int:
    """What this process leaves out of the modes of new files; reading it sets it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _write_all(descriptor: int, data: memoryview, start: int) -> None:
    """`os.pwrite` may write less than it was given."""
    while len(data):
        written = os.pwrite(descriptor, data, start)
        data, start = data[written:], start + written
