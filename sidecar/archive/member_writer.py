"""What an archive unpacks to, before it has its names: nothing is seen before all of it is found whole."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from podferry.contract.errors import Corrupt, FerryError, Problem
from podferry.contract.manifest import Entry
from podferry.sidecar.archive.decompress import ZstdError
from podferry.sidecar.archive.rules import Archive, SpaceBudget, member_problem
from podferry.sidecar.staging.file_ops import write_refused
from podferry.sidecar.staging.staging_dir import StagingDir

CHUNK = 1 << 18
"""Bytes of a member that are copied at once."""
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, ValueError)
"""What the libraries raise where an archive is not what its name says. What the stage raises is translated
before it comes here."""


class MemberWriter:
    """The members of one archive, written aside under a prefix of its own and numbers.

    Attributes:
        members: With their names in the stage, in order.
        problems: What must not be unpacked. From the first on nothing is written.
    """

    def __init__(self, archive: Archive, stage: StagingDir, room: SpaceBudget, prefix: str) -> None:
        """Takes what to unpack, where to, what there is room for, and what the names aside begin with."""
        self.archive = archive
        self.members: list[Entry] = []
        self.problems: list[Problem] = []
        self._stage, self._room = stage, room
        self._prefix = prefix

    def path(self, index: int) -> Path:
        """Where a member lies."""
        return self._stage.aside / f"{self._prefix}{index}"

    def refuse(self, name: str, kind: str = "") -> bool:
        """Whether a member must not be unpacked; it is remembered."""
        problem = member_problem(self.archive, name, kind)
        if problem is not None:
            self.problems.append(problem)
        return problem is not None

    def write(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Copy one member.

        Raises:
            Corrupt: It ends early.
            Refused: The volume was full.
        """
        with self._written(name):
            path = self._stage.grow(f"{self._prefix}{len(self.members)}")
        at = 0
        while at < size:
            data = read(min(size - at, CHUNK))
            if not data:
                measured = f"{at:,} bytes; its header says {size:,}"
                raise broken(self.archive, f"{ascii(name)[:200]} ends early: {measured}")
            with self._written(name):
                self._stage.write(path, memoryview(data), at)
            at += len(data)
        self.members.append(Entry(self.archive.member(name), size))

    def room(self, sizes: Sequence[int]) -> None:
        """See `SpaceBudget.take`."""
        self._room.take(self.archive, sizes)

    @contextmanager
    def _written(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            member = f"{ascii(name)[:200]} of the archive {self.archive.name}"
            raise write_refused(self._stage.root, member, error) from error


@contextmanager
def whole(archive: Archive) -> Iterator[None]:
    """Turns what the libraries raise into an error that names the archive.

    Raises:
        Corrupt: It is no archive of its kind, or is damaged.
    """
    try:
        yield
    except FerryError:
        raise
    except BROKEN as error:
        raise broken(archive, str(error) or type(error).__name__) from error


def broken(archive: Archive, measured: str) -> Corrupt:
    """The error that names a damaged archive."""
    remedy = "Upload it again, exclude it, or set unpack: never"
    return Corrupt.of(f"the archive {archive.name} is no whole {archive.kind.value} file", measured, remedy)
