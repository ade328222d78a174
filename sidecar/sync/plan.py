"""Decides which files a sync moves, and why. Pure.

    at the destination | sizes  | tags                                          | decision
    -------------------|--------|-----------------------------------------------|-------------------
    no                 |        |                                               | moved: new
    yes                | differ |                                               | moved: size
    yes                | equal  | a record has both                             | kept
    yes                | equal  | both are the same checksum                    | kept
    yes                | equal  | none at the source                            | moved: untagged
    yes                | equal  | no record has both                            | moved: unproven

With `size_only`, equal sizes are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from podferry.contract.destination.sync_record import SyncedArchive, SyncedFile
from podferry.contract.manifest import Entry
from podferry.contract.selection import select
from podferry.sidecar.archive.unpack_rules import Archive

CHECKSUM_TAG = re.compile(r'"?(?P<md5>[0-9a-f]{32}(?:-\d+)?)"?')
"""An ETag made of MD5s: of the object, or of its parts and their number. If two stores state the same one,
the bytes are the same; a store that encrypts may state another. Source: Amazon S3, "Object", "ETag"."""


class Reason(StrEnum):
    """Why a file is moved."""

    NEW = "new"
    """The destination does not have it."""
    SIZE = "size"
    """It has another size there."""
    UNTAGGED = "untagged"
    """The source states nothing that identifies its content."""
    UNPROVEN = "unproven"
    """The tag of the source or of the destination is not the recorded one, or there is no record."""


class Move(msgspec.Struct, frozen=True):
    """A file of the source to move, and why."""

    entry: Entry
    reason: Reason


class SyncPlan(msgspec.Struct, frozen=True):
    """What a sync does.

    Attributes:
        moves: Files to move, sorted by name.
        unpacks: Archives to unpack, sorted by name.
        kept: Files that the destination has, equal to those of the source.
        kept_archives: Archives whose members it has.
        others: Names that other processes of the same sync move.
    """

    moves: tuple[Move, ...]
    unpacks: tuple[Archive, ...] = ()
    kept: tuple[Entry, ...] = ()
    kept_archives: tuple[SyncedArchive, ...] = ()
    others: frozenset[str] = frozenset()

    @property
    def kept_names(self) -> frozenset[str]:
        """Names of the files at the destination that are kept, members of archives among them."""
        members = (member.name for one in self.kept_archives for member in one.members)
        return frozenset((*(entry.name for entry in self.kept), *members))

    @property
    def kept_files(self) -> int:
        """Number of them."""
        return len(self.kept_names)

    @property
    def bytes(self) -> int:
        """Bytes that are read from the source."""
        return sum(move.entry.size for move in self.moves) + sum(one.entry.size for one in self.unpacks)


class Records(msgspec.Struct, frozen=True):
    """Everything that is recorded at the destination of one source."""

    files: frozenset[SyncedFile] = frozenset()
    archives: tuple[SyncedArchive, ...] = ()


def plan_sync(
    entries: Iterable[Entry],
    archives: Iterable[Archive],
    destination: Mapping[str, Entry],
    records: Records,
    *,
    size_only: bool = False,
) -> SyncPlan:
    """Compare a source with its destination.

    Args:
        entries: Files of the source to move as they are.
        archives: Those to unpack.
        destination: What is there, by name.
        records: What earlier syncs of this source have written there.
        size_only: Files of equal size count as equal.
    """
    moves, kept = [], []
    for entry in sorted(entries):
        reason = move_reason(entry, destination.get(entry.name), records, size_only=size_only)
        if reason is None:
            kept.append(entry)
        else:
            moves.append(Move(entry, reason))
    unpacked = {
        one.archive: one for one in records.archives if one.archive.tag and _has_members(destination, one)
    }
    every = sorted(archives, key=lambda archive: archive.name)
    unpacks = tuple(archive for archive in every if archive.entry not in unpacked)
    kept_archives = tuple(unpacked[archive.entry] for archive in every if archive.entry in unpacked)
    return SyncPlan(tuple(moves), unpacks, tuple(kept), kept_archives)


def move_reason(source: Entry, there: Entry | None, records: Records, *, size_only: bool) -> Reason | None:
    """Why a file is moved, or None if the destination has it: see the table of this module."""
    if there is None:
        return Reason.NEW
    if there.size != source.size:
        return Reason.SIZE
    if size_only or same_checksum(source.tag, there.tag):
        return None
    if not source.tag:
        return Reason.UNTAGGED
    recorded = SyncedFile(source.name, source.size, source.tag, there.tag) in records.files
    return None if recorded else Reason.UNPROVEN


def same_checksum(first: str, second: str) -> bool:
    """Whether two tags are one checksum of the content."""
    found = [CHECKSUM_TAG.fullmatch(tag) for tag in (first, second)]
    return found[0] is not None and found[1] is not None and found[0]["md5"] == found[1]["md5"]


def proven(plan: SyncPlan, destination: Mapping[str, Entry], records: Records) -> Records:
    """What is equal at both places without having been moved by this sync; equal sizes alone prove nothing.

    Earlier syncs may have had other globs, or unpacked what this one does not: what they have recorded is
    kept while the destination has it.

    Args:
        plan: What this sync does.
        destination: What is left there as it was listed, by name.
        records: What earlier syncs of this source have written there.
    """
    kept = {entry.name: entry for entry in plan.kept}
    found = {
        SyncedFile(entry.name, entry.size, entry.tag, there.tag)
        for entry in kept.values()
        if (there := destination.get(entry.name)) and entry.tag
        if move_reason(entry, there, records, size_only=False) is None
    }
    others = {
        file
        for file in records.files
        if destination.get(file.name) == Entry(file.name, file.size, file.target_tag)
        if file.name not in kept
    }
    current = {one.name for one in plan.unpacks} | {one.archive.name for one in plan.kept_archives}
    archives = (one for one in records.archives if one.archive.name not in current)
    unpacked = (one for one in archives if _has_members(destination, one))
    return Records(frozenset(found | others), (*plan.kept_archives, *unpacked))


def _has_members(destination: Mapping[str, Entry], archive: SyncedArchive) -> bool:
    return all(destination.get(member.name) == member for member in archive.members)


class Removal(msgspec.Struct, frozen=True):
    """A file to remove at the destination, and the source's object that must be gone before."""

    name: str
    origin: str


def plan_removals(
    wanted: Iterable[str],
    listed: Iterable[str],
    destination: Iterable[Entry],
    records: Records,
    globs: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> tuple[Removal, ...]:
    """The files of the destination that the source no longer has, sorted by name.

    Files that the globs do not select are left alone, at either place. Globs are those of the source's names:
    of an archive, not of its members.

    Args:
        wanted: Names that the destination must have, members of archives among them.
        listed: Names of the source's objects.
        destination: What is there.
        records: Say which archive a file came from.
        globs: Those to include, and to exclude.
    """
    names, sources = frozenset(wanted), frozenset(listed)
    archive_of = {member.name: one.archive.name for one in records.archives for member in one.members}
    extra = sorted(entry.name for entry in destination if entry.name not in names)
    origins = {name: archive_of.get(name, name) for name in extra}
    selected = {entry.name for entry in select((Entry(name, 0) for name in origins.values()), *globs)}
    removed = ((name, origin) for name, origin in origins.items() if origin in selected)
    # An archive that is listed has been unpacked again, without this member.
    return tuple(Removal(name, name if origin in sources else origin) for name, origin in removed)


def in_the_way(removals: Iterable[Removal], names: Iterable[str]) -> tuple[Removal, ...]:
    """Those that a directory must lose before it can hold these names.

    A file cannot have the name of a directory with files, nor be the directory of another file.
    """
    wanted = frozenset(names)
    above = frozenset(folder for name in wanted for folder in _folders(name))
    return tuple(one for one in removals if one.name in above or not wanted.isdisjoint(_folders(one.name)))


def _folders(name: str) -> Iterator[str]:
    """The directories that contain a name: `a/b/c` is in `a/b` and `a`."""
    while name := name.rpartition("/")[0]:
        yield name
