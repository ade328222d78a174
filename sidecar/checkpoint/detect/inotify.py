"""Raw inotify: which files below a directory were closed after writing or moved in.

Libraries hide what podferry needs: closes after writing, new directories, and queue overflows. Events are
only hints: a file may be written before its new directory is watched, a directory that is moved in reports no
events for its children, and writes through a memory mapping report none until the mapping ends, which counts
as a close. Scans are authoritative. Events of single writes are not asked for: a trainer makes thousands a
second. Numbers and layout: inotify(7), <sys/inotify.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

from podferry.sidecar.runtime.file_identity import scan

MODIFY, CLOSE_WRITE, MOVED_TO, CREATE, ISDIR = 0x2, 0x8, 0x80, 0x100, 0x4000_0000
Q_OVERFLOW, IGNORED, ONESHOT = 0x4000, 0x8000, 0x8000_0000
ONLYDIR, DONT_FOLLOW = 0x0100_0000, 0x0200_0000
WATCH_MASK = CLOSE_WRITE | MOVED_TO | CREATE | ONLYDIR | DONT_FOLLOW
MAX_FILES = 64
"""Files that are watched for their next change; the ones watched longest are given up."""
HEADER = struct.Struct("iIII")
BUFFER_BYTES = 1 << 18


class Inotify:
    """An inotify instance over a directory tree.

    Attributes:
        moved: Files and directories that were moved in since the caller last emptied this set.
        created: Directories that were created in place since then.
        begun: Files whose next change was watched for and happened, and that have not been closed since.

    Raises:
        OSError: No instance is available (EMFILE: 128 per user by default), or the system has no inotify.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._directories: dict[int, Path] = {}
        self._files: dict[int, Path] = {}
        self.moved: set[Path] = set()
        self.begun: set[Path] = set()
        self.created: set[Path] = set()
        try:
            self.watch(root)
        except FileNotFoundError:  # a trainer creates it again: `refresh` watches it then
            pass
        except OSError:
            self.close()
            raise

    def watch(self, directory: Path) -> None:
        """Watch a directory and everything below it; subdirectories that have been removed are skipped."""
        descriptor = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), WATCH_MASK)
        if descriptor < 0:
            error = OSError(ctypes.get_errno(), "inotify_add_watch", str(directory))
            if directory != self.root and isinstance(error, FileNotFoundError | NotADirectoryError):
                return
            raise error
        self._directories[descriptor] = directory
        for child in self._subdirectories(directory):
            self.watch(child)

    def watch_file(self, path: Path) -> None:
        """Report the next change to a file, once; single writes are reported for no other."""
        self.begun.discard(path)
        for descriptor in list(self._files)[: 1 - MAX_FILES]:
            self._libc.inotify_rm_watch(self.fd, descriptor)
            del self._files[descriptor]
        descriptor = self._libc.inotify_add_watch(self.fd, os.fsencode(path), MODIFY | ONESHOT | DONT_FOLLOW)
        if descriptor >= 0 and descriptor not in self._directories:
            self._files[descriptor] = path

    def refresh(self) -> None:
        """Watch the entire tree again as far as possible; scans cover the rest."""
        with contextlib.suppress(OSError):
            self.watch(self.root)

    @property
    def watches_root(self) -> bool:
        """Whether the root is watched: a trainer may delete and recreate it."""
        return self.root in self._directories.values()

    @staticmethod
    def _subdirectories(directory: Path) -> list[Path]:
        try:
            with os.scandir(directory) as found:
                return [Path(child.path) for child in found if child.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def read(self) -> tuple[set[Path], bool]:
        """Files closed or moved in since the last call, and whether events were lost or are missing."""
        closed: set[Path] = set()
        lost = False
        while True:
            try:
                data = os.read(self.fd, BUFFER_BYTES)
            except BlockingIOError:
                return closed, lost
            lost |= self._parse(data, closed)

    def _parse(self, data: bytes, closed: set[Path]) -> bool:
        """Add the files in one buffer of events to `closed`; returns whether events were lost."""
        lost, offset = False, 0
        while offset < len(data):
            descriptor, mask, _, length = HEADER.unpack_from(data, offset)
            name = data[offset + HEADER.size : offset + HEADER.size + length].rstrip(b"\0")
            offset += HEADER.size + length
            lost |= bool(mask & Q_OVERFLOW)
            if mask & MODIFY and descriptor in self._files:
                self.begun.add(self._files[descriptor])
            if mask & IGNORED:
                self._directories.pop(descriptor, None)
                self._files.pop(descriptor, None)
            elif descriptor in self._directories:
                lost |= not self._handle(mask, self._directories[descriptor] / os.fsdecode(name), closed)
        return lost

    def _handle(self, mask: int, path: Path, closed: set[Path]) -> bool:
        """Handle one event; False if a new directory cannot be watched (ENOSPC: too many watches)."""
        if mask & MOVED_TO:
            self.moved.add(path)
            self.created.discard(path)
        elif mask & CREATE and mask & ISDIR:
            self.created.add(path)
            self.moved.discard(path)
        if not mask & ISDIR:
            if mask & CLOSE_WRITE and not self.moved.isdisjoint(path.parents):
                self.moved.discard(path)  # it was still open when its directory was moved in
            if mask & (CLOSE_WRITE | MOVED_TO):
                closed.add(path)
                self.begun.discard(path)
            return True
        try:
            if mask & (CREATE | MOVED_TO):
                self.watch(path)
        except OSError:
            return False
        finally:
            if mask & MOVED_TO:  # its children report no events: they were written at their old place
                children = {path / name for name in scan(path)}
                closed |= children
                self.moved |= children
        return True

    def close(self) -> None:
        """Release the instance."""
        os.close(self.fd)
