"""Which objects are archives, what of them may be unpacked, and how much room there is for it. Pure.

The members of an archive get the directory that the archive lies in: `data/train.tar` with `a/b.jpg` becomes
`data/a/b.jpg`. Directories are made as files need them, as object stores have none; modes, owners and times
are not kept. What is no regular file is refused by name: a link may lead out of the stage, and a trainer
that finds a file missing cannot tell why.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from podferry.contract.errors import Problem, Refused
from podferry.contract.file_names import name_problem
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import Unpack
from podferry.contract.tmpfs_cost import allocated_bytes, charged_bytes
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.volume_capacity import Capacity

MAX_NAMES_SHOWN = 20
"""Problems of one archive that a message names: those who must repair it need all, but no screens of them."""


class ArchiveKind(StrEnum):
    """What an archive is, by the end of its name."""

    TAR = ".tar"
    TAR_GZ = ".tar.gz"
    TGZ = ".tgz"
    TAR_ZST = ".tar.zst"
    ZIP = ".zip"


class Archive(msgspec.Struct, frozen=True):
    """An object that is unpacked into the stage, and is not itself a file of it.

    Attributes:
        entry: As it was listed.
        kind: How it is read.
    """

    entry: Entry
    kind: ArchiveKind

    @property
    def name(self) -> str:
        """Of the object."""
        return self.entry.name

    def member(self, name: str) -> str:
        """What a member is called in the stage. `tar -C DIRECTORY .` writes `./` before all names."""
        directory = self.name.rpartition("/")[0]
        name = name.removeprefix("./")
        return f"{directory}/{name}" if directory else name


def kind_of(name: str) -> ArchiveKind | None:
    """The kind of archive that a name stands for, None where it stands for none."""
    lower = name.lower()
    return next((kind for kind in ArchiveKind if lower.endswith(kind.value)), None)


def archives_of(entries: Iterable[Entry], unpack: Unpack) -> tuple[Archive, ...]:
    """The entries that are to be unpacked. Packs are not among them: their members are entries themselves."""
    if unpack is not Unpack.ALWAYS:
        return ()
    kinds = ((entry, kind_of(entry.name)) for entry in entries)
    return tuple(Archive(entry, kind) for entry, kind in kinds if kind is not None)


def member_problem(archive: Archive, name: str, kind: str = "") -> Problem | None:
    """Why a member must not be unpacked, None where it may.

    Args:
        archive: What holds it.
        name: As the archive has it.
        kind: What it is in words, where it is neither a file nor a directory.
    """
    plain = name.removeprefix("./")
    found = name_problem(plain) if plain else Problem("the name is empty", repr(name))
    if found is None and archive.member(name).partition("/")[0] == PARTIAL_DIR:
        found = Problem(f"{PARTIAL_DIR} is podferry's own name", repr(name))
    if found is not None:
        remedy = "Write the archive anew with plain relative names"
        return Problem(f"in the archive {archive.name}: {found.what}", ascii(name)[:200], remedy)
    if kind:
        remedy = "Write the archive anew with files in its place (tar: --dereference --hard-dereference)"
        return Problem(f"the archive {archive.name} holds {kind}", ascii(name)[:200], remedy)
    return None


class NameRegistry:
    """The names of a stage: each belongs to one object or to one archive."""

    def __init__(self, names: Iterable[str]) -> None:
        self._owners: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        for name in names:
            self._add(name, "the dataset")

    def take(self, archive: Archive, names: Sequence[str]) -> None:
        """Give an archive its names.

        Raises:
            Refused: Names that the archive holds twice, that others have, or that are both a file and a
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
            return Problem(f"{owner} holds a name twice", shown, "Write the archive anew")
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
    """How much the members of archives may take. Safe in threads.

    What an archive unpacks to is not known before it is read, and may be anything: what counts is the room.
    """

    def __init__(self, capacity: Capacity, reserved: Sequence[int] = ()) -> None:
        """Takes what there is, and the sizes of the files that will be fetched besides."""
        self._capacity = capacity
        self._pages, self._charged, self._files = (
            allocated_bytes(reserved),
            charged_bytes(reserved),
            len(reserved),
        )
        self._lock = threading.Lock()

    def take(self, archive: Archive, sizes: Sequence[int]) -> None:
        """Set room aside for members.

        Raises:
            Refused: There is not enough, with what was needed so far.
        """
        with self._lock:
            self._pages += allocated_bytes(sizes)
            self._charged += charged_bytes(sizes)
            self._files += len(sizes)
            problems = list(self._lacking(archive))
        Refused.raise_any(problems)

    def _lacking(self, archive: Archive) -> Iterable[Problem]:
        found = self._capacity
        memory = [free for free in (found.memory_bytes, found.node_bytes) if free is not None]
        limits = [("its volume", self._pages, found.volume_bytes)]
        limits += [("the memory that is left", self._charged, min(memory))] if memory else []
        remedy = "Give it more room (podferry.io/dataset-size, --dataset-path, medium: disk), or unpack less"
        for where, need, free in limits:
            if need > free:
                told = f"{self._files:,} files so far: {format_bytes(need)}; {format_bytes(free)} are free"
                yield Problem(f"the dataset, {archive.name} unpacked, is larger than {where}", told, remedy)
        if found.volume_files is not None and self._files > found.volume_files:
            told = f"{self._files:,} files so far; {found.volume_files:,} inodes are free"
            yield Problem(f"its volume has too few inodes to unpack {archive.name}", told, remedy)
