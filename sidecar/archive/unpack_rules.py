"""Which objects are archives, which of their members may be unpacked, and the space for them. No I/O.

Members go to the directory of their archive: `a/b.jpg` in `data/train.tar` becomes `data/a/b.jpg`.
Directories are created as files need them, as object stores have none; modes, owners and times are dropped.
Members that are not regular files are refused by name: a link may point out of the staging directory, and if
it were skipped, a trainer could not find out why a file is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from podferry.contract.errors import Problem, Refused
from podferry.contract.file_names import name_problem, quoted
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import Unpack
from podferry.contract.tmpfs_cost import allocated_bytes, charged_bytes
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.volume_capacity import Capacity

MAX_NAMES_SHOWN = 20
"""Problems of one archive in a message: enough to repair it, but not screens of them."""


class ArchiveKind(StrEnum):
    """The format of an archive, by its suffix."""

    TAR = ".tar"
    TAR_GZ = ".tar.gz"
    TGZ = ".tgz"
    TAR_ZST = ".tar.zst"
    ZIP = ".zip"


class Archive(msgspec.Struct, frozen=True):
    """A listed object that is unpacked instead of stored, and its format."""

    entry: Entry
    kind: ArchiveKind

    @property
    def name(self) -> str:
        """The object's name."""
        return self.entry.name

    def staged_name(self, name: str) -> str:
        """A member's name in the staging directory. `tar -C DIRECTORY .` prefixes all names with `./`."""
        directory = self.name.rpartition("/")[0]
        name = name.removeprefix("./")
        return f"{directory}/{name}" if directory else name


def kind_of(name: str) -> ArchiveKind | None:
    """The format by a name's suffix, or None."""
    lower = name.lower()
    return next((kind for kind in ArchiveKind if lower.endswith(kind.value)), None)


def archives_of(entries: Iterable[Entry], unpack: Unpack) -> tuple[Archive, ...]:
    """The entries to unpack. Packs are not among them: their members are entries themselves."""
    if unpack is not Unpack.ALWAYS:
        return ()
    kinds = ((entry, kind_of(entry.name)) for entry in entries)
    return tuple(Archive(entry, kind) for entry, kind in kinds if kind is not None)


def member_problem(archive: Archive, name: str, kind: str = "") -> Problem | None:
    """Why a member must not be unpacked, or None.

    Args:
        archive: Its archive.
        name: As in the archive.
        kind: What it is in words, if neither a file nor a directory.
    """
    plain = name.removeprefix("./")
    found = name_problem(plain) if plain else Problem("the name is empty", repr(name))
    if found is None and archive.staged_name(name).partition("/")[0] == PARTIAL_DIR:
        found = Problem(f"{PARTIAL_DIR} is reserved for podferry", repr(name))
    if found is not None:
        remedy = "Rewrite the archive with plain relative names"
        return Problem(f"in the archive {archive.name}: {found.what}", quoted(name), remedy)
    if kind:
        remedy = "Rewrite the archive with files in its place (tar: --dereference --hard-dereference)"
        return Problem(f"the archive {archive.name} holds {kind}", quoted(name), remedy)
    return None


class NameRegistry:
    """The names in a staging directory: each belongs to one object or archive."""

    def __init__(self, names: Iterable[str]) -> None:
        self._owners: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        for name in names:
            self._add(name, "the dataset")

    def register(self, archive: Archive, names: Sequence[str]) -> None:
        """Register the names of an archive's members.

        Raises:
            Refused: Names that are in the archive twice, belong to others, or are both a file and a
                directory, all at once.
        """
        owner = f"the archive {archive.name}"
        problems: list[Problem] = []
        for name in names:
            problem = self._problem(name, owner)
            if problem is None:
                self._add(name, owner)
            elif len(problems) < MAX_NAMES_SHOWN:
                problems.append(problem)
        Refused.raise_any(problems)

    def _problem(self, name: str, owner: str) -> Problem | None:
        shown, remedy = repr(name), "Rename one of them at its source, or exclude it"
        other = self._owners.get(name)
        if other == owner:
            return Problem(f"{owner} holds a name twice", shown, "Rewrite the archive")
        if other is not None:
            return Problem(f"{owner} and {other} hold a file of the same name", shown, remedy)
        above = next((path for path in _parents(name) if path in self._owners), None)
        other = self._directories.get(name) if above is None else self._owners[above]
        if other is not None:
            both = f"in {owner} and {other}" if other != owner else f"in {owner}"
            return Problem(f"a name is both a file and a directory {both}", repr(above or name), remedy)
        return None

    def _add(self, name: str, owner: str) -> None:
        self._owners[name] = owner
        for path in _parents(name):
            if path in self._directories:
                return
            self._directories[path] = owner


def _parents(name: str) -> Iterable[str]:
    """The directories above a name, nearest first."""
    while name := name.rpartition("/")[0]:
        yield name


class SpaceBudget:
    """The space for members of archives. Thread-safe.

    The unpacked size of an archive is not known before it is read, and may be anything.

    Args:
        capacity: The space available.
        reserved: Sizes of the files that are fetched as they are.
    """

    def __init__(self, capacity: Capacity, reserved: Sequence[int] = ()) -> None:
        self._capacity = capacity
        self._allocated, self._charged = allocated_bytes(reserved), charged_bytes(reserved)
        self._files = len(reserved)
        self._lock = threading.Lock()

    def reserve(self, archive: Archive, sizes: Sequence[int]) -> None:
        """Reserve space for members, or raise `Refused` with the total needed so far."""
        with self._lock:
            self._allocated += allocated_bytes(sizes)
            self._charged += charged_bytes(sizes)
            self._files += len(sizes)
            problems = list(self._shortages(archive))
        Refused.raise_any(problems)

    def _shortages(self, archive: Archive) -> Iterable[Problem]:
        found = self._capacity
        memory = [free for free in (found.memory_bytes, found.node_bytes) if free is not None]
        limits = [("its volume", self._allocated, found.volume_bytes)]
        limits += [("the free memory", self._charged, min(memory))] if memory else []
        remedy = "Give it more room (podferry.io/dataset-size, --dataset-path, medium: disk), or unpack less"
        files = f"{self._files:,} files so far"
        for where, need, free in limits:
            if need > free:
                what = f"the dataset, {archive.name} unpacked, is larger than {where}"
                yield Problem(what, f"{files}: {format_bytes(need)}; {format_bytes(free)} are free", remedy)
        if found.volume_files is not None and self._files > found.volume_files:
            measured = f"{files}; {found.volume_files:,} inodes are free"
            yield Problem(f"its volume has too few inodes to unpack {archive.name}", measured, remedy)
