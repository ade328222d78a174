"""Scans the outputs directory, and reads each file as it was at one moment.

Nothing signals that an output is finished: a log grows, a result is replaced. So a file is read up to the
size that it had when it was opened, and its last chunk is released only once that prefix is known to have
existed as such. Later changes are left to the next round.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import xxhash

from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import Changed, Problem
from podferry.contract.file_names import name_problem, quoted
from podferry.sidecar.runtime.file_identity import FileIdentity, Ignored, walk

CHUNK_BYTES = 4 << 20
"""Size of a read."""
CLOCK_TICK_NS = 50_000_000
"""A file's times may lag behind by this much: kernels stamp with a clock that ticks every 1 to 10 ms."""
COARSE_CLOCK_TICK_NS = 2_000_000_000
"""The same on file systems that store whole seconds: FAT rounds to two."""
MAX_NAMES_SHOWN = 5
"""Names in one message."""
RESERVED = (f"names below {PRIVATE} are podferry's own and not uploaded", "Choose another name")
REASONS = {
    Ignored.LINK: ("symbolic links are not uploaded", "Write a copy where the file is needed"),
    Ignored.SPECIAL: ("special files are not uploaded", "Keep sockets and pipes elsewhere"),
    Ignored.UNREADABLE: ("directories that cannot be read are not uploaded", "Change their mode"),
}
"""Why a file is ignored, and the remedy."""


@dataclass(frozen=True, slots=True)
class OutputScan:
    """The files to upload, by name relative to the directory, and what is ignored and why."""

    files: dict[str, FileIdentity]
    problems: tuple[Problem, ...] = ()


def scan_outputs(root: Path) -> OutputScan:
    """Scan a tree, without files that disappear meanwhile; `PermissionError` if its root is unreadable."""
    files: dict[str, FileIdentity] = {}
    ignored: dict[tuple[str, str], set[str]] = {}
    problems: list[Problem] = []
    for name, found in walk(root):
        if name.partition("/")[0] == PRIVATE:
            ignored.setdefault(RESERVED, set()).add(PRIVATE)
        elif isinstance(found, Ignored):
            ignored.setdefault(REASONS[found], set()).add(name)
        elif (problem := name_problem(name)) is not None:
            problems.append(problem)
        else:
            files[name] = found
    grouped = (
        Problem(what, sample_names(names), remedy) for (what, remedy), names in sorted(ignored.items())
    )
    return OutputScan(files, (*grouped, *problems))


def sample_names(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    shown, more = sorted(names)[:MAX_NAMES_SHOWN], len(names) - MAX_NAMES_SHOWN
    return ", ".join(map(quoted, shown)) + (f" and {more} more" if more > 0 else "")


@dataclass(slots=True)
class StableReader:
    """Reads one file.

    Attributes:
        path: The file.
        scanned: Its identity in the scan: another file with this name may be a link to anywhere.
        read: The identity of what is read.
        conclusive: Whether that identity differs from all later versions: two writes within one tick of the
            file system's clock have the same times.
        digest: XXH3-128 of what was read.
    """

    path: Path
    scanned: FileIdentity
    read: FileIdentity = field(default=FileIdentity(0, 0, 0))
    conclusive: bool = False
    digest: bytes = b""

    def body(self) -> Iterator[bytes]:
        """The file at one moment, in chunks; one empty chunk for an empty file.

        Raises `Changed` before the last chunk if it changed meanwhile, and `OSError` if it cannot be read.
        """
        held = b""
        with self._open() as file:
            digest, left = xxhash.xxh3_128(), self.read.size
            while left:
                chunk = file.read(min(left, CHUNK_BYTES))
                if not chunk:
                    raise self._changed("it became shorter")
                digest.update(chunk)
                left -= len(chunk)
                if held:
                    yield held
                held = chunk
            self.digest = digest.digest()
            self._verify(file)
        yield held

    def _open(self) -> BinaryIO:
        now = time.time_ns()
        # Never follow a link, and do not block on a pipe that has taken the name.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.fdopen(os.open(self.path, flags), "rb", buffering=0)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link or a socket has taken the name
                raise self._changed("it was replaced") from error
            raise
        found = os.fstat(file.fileno())
        self.read = FileIdentity.of(found)
        tick = CLOCK_TICK_NS if found.st_mtime_ns % 1_000_000_000 else COARSE_CLOCK_TICK_NS
        self.conclusive = found.st_mtime_ns + tick < now
        if not stat.S_ISREG(found.st_mode) or self.read.inode != self.scanned.inode:
            file.close()
            raise self._changed("it was replaced")
        return file

    def _verify(self, file: BinaryIO) -> None:
        """Check that the bytes read existed together at one moment.

        If the identity cannot show it, since the file grew or its clock is too coarse, a second read that
        yields the same bytes proves that they existed between the two.
        """
        if self.conclusive and FileIdentity.of(os.fstat(file.fileno())) == self.read:
            return
        second, left = xxhash.xxh3_128(), self.read.size
        file.seek(0)
        while left and (chunk := file.read(min(left, CHUNK_BYTES))):
            second.update(chunk)
            left -= len(chunk)
        if left or second.digest() != self.digest:
            raise self._changed("it was overwritten")

    def _changed(self, how: str) -> Changed:
        return Changed.of(f"{self.path.name} changed while it was being read", how, "It will be retried")
