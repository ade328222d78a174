"""Receives the members of one archive: written to partial files, none is visible before all are read."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podferry.contract.errors import Corrupt, FerryError, Problem
from podferry.contract.file_names import quoted
from podferry.contract.manifest import Entry
from podferry.sidecar.archive.decompress import ZstdError
from podferry.sidecar.archive.unpack_rules import Archive, SpaceBudget, member_problem
from podferry.sidecar.staging.staging_dir import StagingDir

COPY_BYTES = 1 << 18
"""Of a member, copied per read."""
LIBRARY_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    ZstdError,
    EOFError,
    NotImplementedError,  # a zip that claims a later version of the format
    OSError,
    ValueError,
)
"""What the libraries raise for a malformed archive. Staging errors are translated earlier."""


class MemberReceiver(ABC):
    """Takes the members of one archive, in a thread.

    Attributes:
        archive: The archive.
        budget: The space left for members.
        members: Those written, in order, with their names in place of the archive.
        problems: Members that must not be unpacked. After the first one, nothing more is written.
    """

    def __init__(self, archive: Archive, budget: SpaceBudget) -> None:
        self.archive, self.budget = archive, budget
        self.members: list[Entry] = []
        self.problems: list[Problem] = []

    def reject(self, name: str, kind: str = "") -> bool:
        """Whether a member must not be unpacked, which adds to `problems`. See `member_problem`."""
        problem = member_problem(self.archive, name, kind)
        if problem is not None:
            self.problems.append(problem)
        return problem is not None

    @abstractmethod
    def write(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Copy one member; raises `Corrupt` if it ends early, and `Refused` if it cannot be written."""

    def pieces(self, name: str, size: int, read: Callable[[int], bytes]) -> Iterator[bytes]:
        """The content of a member in pieces; raises `Corrupt` if it ends early."""
        offset = 0
        while offset < size:
            data = read(min(size - offset, COPY_BYTES))
            if not data:
                measured = f"{offset:,} bytes; its header says {size:,}"
                raise corrupt(self.archive, f"{quoted(name)} ends early: {measured}")
            yield data
            offset += len(data)


class MemberWriter(MemberReceiver):
    """Writes members to partial files, named by a prefix and a number.

    Args:
        stage: Holds the partial files.
        prefix: Of the partial files' names.
    """

    def __init__(self, archive: Archive, stage: StagingDir, budget: SpaceBudget, prefix: str) -> None:
        super().__init__(archive, budget)
        self._stage, self._prefix = stage, prefix

    def partial_path(self, index: int) -> Path:
        """The partial file of a member."""
        return self._stage.partial_dir / f"{self._prefix}{index}"

    def write(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """See `MemberReceiver.write`."""
        with self._write_errors(name):
            path = self._stage.create_partial(f"{self._prefix}{len(self.members)}")
        offset = 0
        for data in self.pieces(name, size, read):
            with self._write_errors(name):
                self._stage.write(path, memoryview(data), offset)
            offset += len(data)
        self.members.append(Entry(self.archive.staged_name(name), size))

    @contextmanager
    def _write_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            member = f"{quoted(name)} of the archive {self.archive.name}"
            raise self._stage.write_error(member, error) from error


@contextmanager
def library_errors(archive: Archive) -> Iterator[None]:
    """Turns the libraries' errors into `Corrupt`, which names the archive: damaged, or of another kind."""
    try:
        yield
    except FerryError:
        raise
    except LIBRARY_ERRORS as error:
        raise corrupt(archive, str(error) or type(error).__name__) from error


def corrupt(archive: Archive, measured: str) -> Corrupt:
    """The error for a damaged archive."""
    remedy = "Upload it again, exclude it, or set unpack: never"
    what = f"the archive {archive.name} is not a complete {archive.kind.value} file"
    return Corrupt.of(what, measured, remedy)
