"""Scans the checkpoint directory: the checkpoints in it, and every name that belongs to none.

Links within a checkpoint are followed as far as they stay in the directory: what they lead to is uploaded
under the link's name, since stores have no links. A link at the top that leads to a checkpoint is the
trainer's pointer to it, and is not uploaded. Whatever else is left out is named with its reason.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidates
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, is_pointer, is_text, read_small
from podferry.sidecar.checkpoint.detect.unfinished_names import IGNORED_NAMES, is_unfinished
from podferry.sidecar.runtime.file_identity import FileIdentity, Files, Ignored, walk
from podferry.sidecar.runtime.link_target import LeavesRoot, LinkRefused, resolve_within, stat_within

OWN = ".podferry"
"""Names at the top that begin with it are podferry's own."""
MAX_DEPTH = 4
"""Links to directories within one another that are followed: each may have many, and they multiply."""
LOOP = "a link to a directory that contains it"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A name that is not uploaded.

    Attributes:
        reason: What it is, for people.
        loses: Whether data is lost with it if it is not uploaded.
        files: What it is made of, as far as known: later it may be another one.
    """

    reason: str
    loses: bool = False
    files: Files = ()


@dataclass(slots=True)
class DirectoryScan:
    """The directory at one moment.

    Attributes:
        files: Every file by name, also those that links lead to.
        links: The real names of the latter.
        left_out: What is not uploaded: names at the top, and names within checkpoints.
        present: The checkpoints.
    """

    files: dict[str, FileIdentity] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    present: dict[str, Candidate] = field(default_factory=dict)


def scan_directory(root: Path) -> DirectoryScan:
    """Scan a checkpoint directory; `PermissionError` if it is unreadable.

    An unreadable directory within is listed like a file: a checkpoint with one cannot be held, so it must
    never look complete without it.
    """
    scan = DirectoryScan()
    _add(scan, root, "", ".", ())
    small = [name for name in POINTERS if name in scan.files and is_pointer(name, scan.files[name].size)]
    texts = {name: text for name, text in read_small(root, small).items() if is_text(text)}
    scan.present = candidates(scan.files, texts)
    scan.left_out |= _without_checkpoint(scan.files, scan.present)
    return scan


def _add(scan: DirectoryScan, root: Path, prefix: str, real: str, within: tuple[str, ...]) -> None:
    """Add what is in a directory, `real` without links, under names that begin with `prefix`."""
    for below, found in walk(root / real):
        name = prefix + below
        if isinstance(found, FileIdentity):
            scan.files[name] = found
            if within:
                scan.links[name] = f"{real}/{below}"
        elif found is Ignored.UNREADABLE:
            scan.files[name] = FileIdentity.of((root / real / below).stat())
        elif found is Ignored.LINK:
            try:
                _follow(scan, root, name, within)
            except LinkRefused as refusal:
                files = ((name, FileIdentity.of((root / real / below).lstat())),)
                scan.left_out[name] = LeftOut(str(refusal), isinstance(refusal, LeavesRoot), files)
        else:
            scan.left_out[name] = LeftOut(found.value)


def _follow(scan: DirectoryScan, root: Path, name: str, within: tuple[str, ...]) -> None:
    """Add what a link leads to; raises `LinkRefused` if it is not followed."""
    real = resolve_within(root, name)
    if "/" not in name and not _is_hidden(real):
        scan.left_out[name] = LeftOut(f"a link to {real}, which is uploaded itself")
        return
    found = stat_within(root, real)
    if stat.S_ISREG(found.st_mode):
        scan.files[name], scan.links[name] = FileIdentity.of(found), real
    elif not stat.S_ISDIR(found.st_mode):
        scan.left_out[name] = LeftOut(Ignored.SPECIAL.value)
    else:
        walked = (*within, resolve_within(root, name.rpartition("/")[0] or "."))
        if len(walked) > MAX_DEPTH or any(real == "." or f"{one}/".startswith(f"{real}/") for one in walked):
            raise LinkRefused(LOOP)
        _add(scan, root, f"{name}/", real, walked)


def _is_hidden(name: str) -> bool:
    """Whether a name is not part of any checkpoint, so that a link to it must be followed."""
    top = name.partition("/")[0]
    return top in IGNORED_NAMES or is_unfinished(top)


def _without_checkpoint(
    files: Mapping[str, FileIdentity], present: Mapping[str, Candidate]
) -> dict[str, LeftOut]:
    """The names at the top of the files that belong to no checkpoint, with the reasons."""
    owned = {name for candidate in present.values() for name, _ in candidate.files}
    groups: dict[str, list[tuple[str, FileIdentity]]] = {}
    for name in sorted(files.keys() - owned):
        groups.setdefault(name.partition("/")[0], []).append((name, files[name]))
    return {top: _reason(top, tuple(group)) for top, group in groups.items() if not top.startswith(OWN)}


def _reason(top: str, files: Files) -> LeftOut:
    if top in IGNORED_NAMES:
        return LeftOut("a script of the framework", files=files)
    if is_unfinished(top):
        # Hidden names have many reasons to be there; the others are those of files in the making.
        temporary = not top.startswith(".") or is_unfinished(f"in/{top}")
        return LeftOut(
            "named like an unfinished file" if temporary else "hidden",
            temporary and any(one.size for _, one in files),
            files,
        )
    return LeftOut("a pointer to no checkpoint", files=files)
