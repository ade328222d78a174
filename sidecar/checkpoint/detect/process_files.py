"""Which files other processes have open for writing, as far as /proc shows them.

Descriptors are listed in `/proc/<pid>/fd`, mappings in `/proc/<pid>/maps`. A process of another user or of
another container cannot be looked at. Sources: proc_pid_fd(5), proc_pid_fdinfo(5), proc_pid_maps(5).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SURVEY_SECONDS = 0.25
"""At most, for one survey: with 2,000 processes of 20 descriptors each, it takes about 0.1 s."""
FLAGS = re.compile(rb"^flags:\s*(\d+)$", re.MULTILINE)


class FileKey(NamedTuple):
    """What identifies a file among all open ones."""

    device: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileKey:
        """The key in a stat result."""
        return cls(stat.st_dev, stat.st_ino)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found.

    Attributes:
        open: The files that some process has open for writing or maps shared and writable.
        covered: Whether every process of the files' owners could be looked at in time.
    """

    open: frozenset[FileKey]
    covered: bool


def survey(files: Mapping[Path, os.stat_result], proc: Path, seconds: float = SURVEY_SECONDS) -> Survey:
    """Look for `files` in all processes but this one, those of the files' owners first; bounded by `seconds`.

    Files are found by their present name or by another one with the same last part.
    """
    owners, deadline = {stat.st_uid for stat in files.values()}, time.monotonic() + seconds
    wanted = {FileKey.of(stat) for stat in files.values()}
    names = {path.name for path in files}
    found: set[FileKey] = set()
    covered = True
    for owned, process in sorted(_processes(proc, owners), key=lambda one: not one[0]):
        if time.monotonic() > deadline:
            return Survey(frozenset(found), covered=covered and not owned)
        try:
            found.update(wanted.intersection(_descriptors(process, names)))
            if owned:
                found.update(wanted.intersection(_mappings(process, names)))
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            covered &= not owned
    return Survey(frozenset(found), covered)


def _processes(proc: Path, owners: Set[int]) -> Iterator[tuple[bool, str]]:
    """Whether a process belongs to one of the owners, and its directory."""
    own = str(os.getpid())
    for name in os.listdir(proc):  # noqa: PTH208 - names are enough, and there may be thousands
        if name.isdecimal() and name != own:
            directory = f"{proc}/{name}"
            try:
                yield os.stat(directory).st_uid in owners, directory  # noqa: PTH116 - for speed
            except FileNotFoundError:
                continue


def _descriptors(process: str, names: Set[str]) -> Iterator[FileKey]:
    """Files of these names that a process has open for writing."""
    with os.scandir(f"{process}/fd") as found:
        for descriptor in found:
            try:
                # The link's text needs no file system: stat might wait for one that does not answer.
                target = os.readlink(descriptor.path)  # noqa: PTH115 - for speed
                if target.rpartition("/")[2] in names and _writes(f"{process}/fdinfo/{descriptor.name}"):
                    yield FileKey.of(os.stat(descriptor.path))  # noqa: PTH116 - follows the kernel's link
            except FileNotFoundError:
                continue


def _writes(info: str) -> bool:
    with open(info, "rb") as file:  # noqa: PTH123 - for speed
        flags = FLAGS.search(file.read())
    return flags is not None and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _mappings(process: str, names: Set[str]) -> Iterator[FileKey]:
    """Files of these names that a process maps shared and writable, as fields 4 and 5 of a line show."""
    with open(f"{process}/maps", "rb") as file:  # noqa: PTH123 - for speed
        for line in file.read().splitlines():
            if b" rw-s " in line and os.fsdecode(line.rpartition(b"/")[2]) in names:
                device, inode = line.split(None, 5)[3:5]
                major, minor = (int(part, 16) for part in device.split(b":"))
                yield FileKey(os.makedev(major, minor), int(inode))
