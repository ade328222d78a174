"""Reads a directory of outputs: what is in it, and each file as it stood at one moment.

Nobody tells when an output is finished: a log grows, a result is replaced. So a file is read up to the size
that it had when it was opened, and its last chunk is given out only when that prefix is known to have stood
there as a whole. What has changed by then is for the next round.
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

from podferry.contract.commit import PRIVATE
from podferry.contract.errors import Changed, Problem
from podferry.contract.file_names import name_problem
from podferry.sidecar.runtime.file_identity import FileIdentity, Ignored, walk

CHUNK_BYTES = 4 << 20
"""Read at once."""
TICK_NS = 50_000_000
"""By how much a file's times may lag behind: kernels stamp with a clock that ticks every 1 to 10 ms."""
COARSE_NS = 2_000_000_000
"""The same where a file system keeps whole seconds: FAT rounds to two."""
NAMED = 5
"""Names in one message: more would hide what it says."""
RESERVED = (f"names below {PRIVATE} are podferry's own and not uploaded", "Choose another name")
REASONS = {
    Ignored.LINK: ("symbolic links are not uploaded", "Write a copy where the file is wanted"),
    Ignored.SPECIAL: ("what is no regular file is not uploaded", "Keep sockets and pipes elsewhere"),
    Ignored.UNREADABLE: ("directories that cannot be read are not uploaded", "Change their mode"),
}
"""What is said of what is left out, and what to do."""


@dataclass(frozen=True, slots=True)
class OutputScan:
    """What lies in the directory.

    Attributes:
        files: Identities of what is uploaded, by the name relative to the directory.
        problems: What is left out, and why.
    """

    files: dict[str, FileIdentity]
    problems: tuple[Problem, ...] = ()


def scan_outputs(root: Path) -> OutputScan:
    """Look at everything below a directory; what goes meanwhile is not in it.

    Raises:
        PermissionError: The directory itself cannot be read.
    """
    files: dict[str, FileIdentity] = {}
    left_out: dict[tuple[str, str], set[str]] = {}
    problems: list[Problem] = []
    for name, found in walk(root):
        if name.partition("/")[0] == PRIVATE:
            left_out.setdefault(RESERVED, set()).add(PRIVATE)
        elif isinstance(found, Ignored):
            left_out.setdefault(REASONS[found], set()).add(name)
        elif (problem := name_problem(name)) is not None:
            problems.append(problem)
        else:
            files[name] = found
    listed = (Problem(what, naming(names), remedy) for (what, remedy), names in sorted(left_out.items()))
    return OutputScan(files, (*listed, *problems))


def naming(names: Collection[str]) -> str:
    """The first of some names, and how many more there are."""
    shown, more = sorted(names)[:NAMED], len(names) - NAMED
    return ", ".join(map(ascii, shown)) + (f" and {more} more" if more > 0 else "")


@dataclass(slots=True)
class StableReader:
    """One file on its way.

    Attributes:
        path: The file.
        seen: Its identity in the survey: another file of its name by now may be a link to anywhere.
        taken: The identity of what is being sent.
        certain: Whether that identity tells it from all that comes later; two writes within one tick of the
            file system's clock look alike.
    """

    path: Path
    seen: FileIdentity
    taken: FileIdentity = field(default=FileIdentity(0, 0, 0))
    certain: bool = False

    def body(self) -> Iterator[bytes]:
        """The file as it stood at one moment, in chunks; one empty chunk for an empty file.

        Raises:
            Changed: It did not stand still for long enough; the last chunk has not been given out.
            OSError: It cannot be read, or is gone.
        """
        held = b""
        with self._open() as file:
            digest, left = xxhash.xxh3_128(), self.taken.size
            while left:
                chunk = file.read(min(left, CHUNK_BYTES))
                if not chunk:
                    raise self._changed("it became shorter")
                digest.update(chunk)
                left -= len(chunk)
                if held:
                    yield held
                held = chunk
            self._check(file, digest.digest())
        yield held

    def _open(self) -> BinaryIO:
        now = time.time_ns()
        # A link is never followed, and a pipe that took the name does not block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.fdopen(os.open(self.path, flags), "rb", buffering=0)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link or a socket has taken the name
                raise self._changed("it was replaced") from error
            raise
        found = os.fstat(file.fileno())
        self.taken = FileIdentity.of(found)
        tick = TICK_NS if found.st_mtime_ns % 1_000_000_000 else COARSE_NS
        self.certain = found.st_mtime_ns + tick < now
        if not stat.S_ISREG(found.st_mode) or self.taken.inode != self.seen.inode:
            file.close()
            raise self._changed("it was replaced")
        return file

    def _check(self, file: BinaryIO, digest: bytes) -> None:
        """That what was read stood there as a whole.

        Where the identity cannot tell, since the file grew or its clock is too coarse, a second reading that
        finds the same proves that it stood there between the two.
        """
        if self.certain and FileIdentity.of(os.fstat(file.fileno())) == self.taken:
            return
        again, left = xxhash.xxh3_128(), self.taken.size
        file.seek(0)
        while left and (chunk := file.read(min(left, CHUNK_BYTES))):
            again.update(chunk)
            left -= len(chunk)
        if left or again.digest() != digest:
            raise self._changed("it was overwritten")

    def _changed(self, how: str) -> Changed:
        return Changed.of(f"{self.path.name} changed while it was being read", how, "It is tried again")
