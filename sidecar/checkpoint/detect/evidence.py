"""What the files of a checkpoint themselves show: formats, renames, closes. Reads files; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.format_checks import check_format, missing_shards
from podferry.sidecar.checkpoint.detect.formats.file_holes import hole_bytes
from podferry.sidecar.checkpoint.detect.formats.zip_checksums import has_checksums
from podferry.sidecar.runtime.file_identity import FileIdentity

NO_END = "its format does not show whether it is complete"
OF_TWO_SAVES = "it was overwritten in place, and its format does not show whether all of it is new"
MAY_LACK_MEMBERS = "its format does not show whether members are missing"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found in a checkpoint's files.

    Attributes:
        defect: Why it is certainly incomplete, or None.
        renamed: Its directory, or each of its files, was renamed into place after the last write.
        unproven: Files whose own end nothing proves, each with the reason.
        members: What the format of each archive that may lack members says about them, by file name.
        holes: Bytes of unproven files that nobody has written, by file name; none if there are none.
        unclosed: Unproven files that may still be written: no close was seen.
        open: Files that a process has open for writing.
        lingered: Unproven files that may have been created at full size and filled later.
    """

    defect: str | None = None
    renamed: bool = False
    unproven: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    holes: Mapping[str, int] = field(default_factory=dict)
    unclosed: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    lingered: frozenset[str] = frozenset()

    @property
    def may_change(self) -> frozenset[str]:
        """Unproven files that somebody may still be filling, as far as that can be seen."""
        return self.unclosed | self.lingered | self.holes.keys()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch has seen of a checkpoint's current version.

    Attributes:
        closed: The files of which a close was seen.
        moved: The files that were moved in.
        directory_moved: Its directory was moved in, with all its files.
        directory_in_place: Its directory was created in place, or a file was written in it after its move.
        left_out: Why data that links lead to is not uploaded with it.
        lingered: Files that had their size a while before they were closed.
        emptied: What its files held before they were cut off, to be written again.
        in_place: The files that were written at their names.
        overwritten: Files with the inode of an earlier save, that were not seen to be emptied.
        patched: Files that were changed at their full size, without having been emptied.
        written_at: The other name at which each of its files was written, for those with one.
    """

    closed: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    directory_moved: bool = False
    directory_in_place: bool = False
    left_out: tuple[str, ...] = ()
    lingered: frozenset[str] = frozenset()
    emptied: Mapping[str, FileIdentity] = field(default_factory=dict)
    in_place: frozenset[str] = frozenset()
    written_at: Mapping[str, str] = field(default_factory=dict)
    overwritten: frozenset[str] = frozenset()
    patched: frozenset[str] = frozenset()


def gather(
    root: Path, candidate: Candidate, times: ChangeTimes, seen: Seen, *, whole: bool = False
) -> Evidence:
    """Read what a checkpoint's files show.

    Args:
        root: The checkpoint directory.
        candidate: The checkpoint.
        times: Whose change times may show a rename, unless it came within a tick of their clock.
        seen: What the watch has seen.
        whole: No other pod has a part of it.
    """
    unproven, members = {}, {}
    for name, identity in candidate.files:
        verdict = check_format(root / name)
        if verdict.defect is not None:
            return Evidence(f"{name}: {verdict.defect}")
        moved = name in seen.moved and times.is_new(identity.mtime_ns)
        moved = moved or (name not in seen.in_place and moved_in(root / name, times))
        if moved or name not in candidate.data_files:
            continue
        members[name] = frozenset(verdict.members)
        if not verdict.conclusive:
            unproven[name] = MAY_LACK_MEMBERS if verdict.members else NO_END
        elif name in seen.overwritten and _may_be_of_two_saves(root / name, patched=name in seen.patched):
            unproven[name] = OF_TWO_SAVES
    if missing := missing_shards(root, [name for name, _ in candidate.files], whole=whole):
        return Evidence(missing)
    return Evidence(
        renamed=(seen.directory_moved and times.is_new(candidate.changed_ns))
        or (not seen.directory_in_place and directory_moved_in(root, candidate, times)),
        unproven=unproven,
        members={name: found for name, found in members.items() if found},
        holes={name: count for name in unproven if (count := _hole_bytes(root / name))},
        unclosed=frozenset(unproven.keys() - seen.closed),
        lingered=frozenset(unproven.keys() & seen.lingered),
    )


def _may_be_of_two_saves(path: Path, *, patched: bool) -> bool:
    """Whether a file that was overwritten in place may have old bytes: only checksums show that."""
    proven = has_checksums(path)
    return patched if proven is None else not proven


def _hole_bytes(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return hole_bytes(file)
    except OSError:
        return 0


def moved_in(path: Path, times: ChangeTimes) -> bool:
    """Whether a file was renamed, or its times were set, after its last write, which sets both at once."""
    try:
        stat = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return times.shows_move(stat, stat.st_mtime_ns)


def directory_moved_in(root: Path, candidate: Candidate, times: ChangeTimes) -> bool:
    """Whether a checkpoint is a directory that was renamed into place after everything in it was written.

    A rename changes the directory's own change time, and neither its modification time nor its files' times.
    Every entry that is created later sets both times of its directory. Our links do not touch it. `chmod`,
    and `shutil.copytree` at its end, change the directory's change time, too, but only a rename changes the
    directory above at the same moment.
    """
    top = root / candidate.name
    folders = {top, *((root / name).parent for name, _ in candidate.files)}
    if any(not name.startswith(f"{candidate.name}/") for name in candidate.data_files):
        return False
    try:
        written = max(folder.stat(follow_symlinks=False).st_mtime_ns for folder in folders)
        moved, above = top.stat(follow_symlinks=False), root.stat()
    except OSError:
        return False
    in_place = above.st_mtime_ns < moved.st_ctime_ns
    return not in_place and times.shows_move(moved, max(written, candidate.changed_ns))
