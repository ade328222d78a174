"""Writes files into a stage: to a partial file first, renamed once complete.

So every file that has its name in the stage is complete.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes
from podferry.sidecar.staging.file_ops import PARTIAL_DIR, create_file, current_umask, remove_tree, write_all

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
PID_SEPARATOR = "~"
"""Between a process and the number of its partial file, which no other process can resume."""


class StageWriter:
    """Creates, writes and publishes the files of a stage that its process, or its parent, has claimed.

    Args:
        root: The stage.
        file_mode: Permissions of its files.

    Attributes:
        partial_dir: Where partial files are.
        checksums: Takes the CRC-64/NVME of each file that is fetched into the stage, by name, as far as it is
            known without reading it again. None to compute none.
    """

    def __init__(self, root: Path, file_mode: int = FILE_MODE) -> None:
        self.root = root
        self.file_mode = file_mode
        self.partial_dir = root / PARTIAL_DIR
        self._root, self._partial_dir = str(root), str(self.partial_dir)
        self.checksums: dict[str, int] | None = None
        self._umask = current_umask()
        self._directories = {""}
        # A worker may outlive its agent for a moment: it must not write to the next agent's files.
        self._prefix = f"{os.getpid()}{PID_SEPARATOR}"

    def create_partial(self, number: int | str) -> Path:
        """Create an empty partial file, under a number of this process or a name; an old one is removed."""
        path = self.partial_dir / (number if isinstance(number, str) else f"{self._prefix}{number}")
        os.close(create_file(str(path)))
        return path

    def write(self, path: Path, data: memoryview, start: int) -> None:
        """Write at an offset of a partial file. Thread-safe. `OSError`: ENOSPC if the volume is full."""
        descriptor = os.open(path, os.O_WRONLY)
        try:
            write_all(descriptor, data, start)
        finally:
            os.close(descriptor)

    def publish(self, path: Path, entry: Entry) -> None:
        """Rename a complete partial file to its name."""
        self.rename_in(self.complete(path), entry.name)

    def complete(self, path: Path) -> str:
        """Set the mode of a complete partial file; its path, for `rename_in`."""
        path.chmod(self.file_mode)
        return str(path)

    def write_small(self, number: int, data: memoryview, entry: Entry) -> None:
        """`create_partial`, `write` and `publish` in one: half of the system calls, and no `Path`."""
        self.rename_in(self.write_complete(number, data), entry.name)

    def write_complete(self, number: int, data: memoryview) -> str:
        """`create_partial`, `write` and `complete` in one."""
        path = f"{self._partial_dir}/{self._prefix}{number}"
        descriptor = create_file(path, self.file_mode)
        try:
            write_all(descriptor, data, 0)
            if self.file_mode & self._umask:
                os.fchmod(descriptor, self.file_mode)
        finally:
            os.close(descriptor)
        return path

    def rename_in(self, path: str, name: str) -> None:
        """Rename a complete file, whose mode is set, to its name in the stage."""
        self._make_directory(name.rpartition("/")[0])
        os.rename(path, f"{self._root}/{name}")  # noqa: PTH104 - once per file

    def _make_directory(self, directory: str) -> None:
        """Make a directory of the stage and those above it, once."""
        if directory in self._directories:
            return
        self._make_directory(directory.rpartition("/")[0])
        path = self.root / directory
        if not path.is_dir():
            path.mkdir(exist_ok=True)  # another process of this prefetch may have been faster
            path.chmod(stat.S_IMODE(path.stat().st_mode) | DIRECTORY_MODE)  # whatever the umask is
        self._directories.add(directory)

    def remove_partials(self, prefix: str = "") -> None:
        """Remove the partial files with a prefix; or all of them, as far as that is possible."""
        if not prefix:
            remove_tree(self.partial_dir)
            return
        for path in self.partial_dir.glob(f"{prefix}*"):
            path.unlink()

    def write_error(self, name: str, error: OSError) -> Refused:
        """The error to raise when `name` could not be written."""
        if error.errno != errno.ENOSPC:
            remedy = "Check the volume and its permissions"
            return Refused.of(f"{name} cannot be written to the stage", str(error), remedy)
        volume = os.statvfs(self.root)
        free = f"{format_bytes(volume.f_bavail * volume.f_frsize)} and {volume.f_favail:,} inodes are free"
        what = f"the volume was full while {name} was being written: something else may be writing to it"
        return Refused.of(what, free, "Give the dataset a larger volume, or one of its own")
