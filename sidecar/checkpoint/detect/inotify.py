"""Raw inotify: which files below a directory were closed after writing or moved in.

Libraries hide what is needed here: a close after writing, a directory's creation, and the queue's overflow.
Events are hints. A file can be written before its new directory is watched, a directory that is moved in
brings no events of its children, and stores through a mapping bring none at all: scans tell the truth.
Numbers and layout: inotify(7), <sys/inotify.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

from podferry.sidecar.runtime.file_identity import scan

CLOSE_WRITE, MOVED_TO, CREATE, ISDIR = 0x8, 0x80, 0x100, 0x4000_0000
Q_OVERFLOW, IGNORED = 0x4000, 0x8000
ONLYDIR, DONT_FOLLOW = 0x0100_0000, 0x0200_0000
WATCHED = CLOSE_WRITE | MOVED_TO | CREATE | ONLYDIR | DONT_FOLLOW
HEADER = struct.Struct("iIII")
BUFFER_BYTES = 1 << 18


class Inotify:
    """An inotify instance over a directory tree.

    Raises:
        OSError: No instance is to be had (EMFILE: 128 a user by default) or the system has no inotify.
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
        try:
            self.watch(root)
        except OSError:
            self.close()
            raise

    def watch(self, directory: Path) -> None:
        """Watch a directory and all below it; one that has gone meanwhile is passed over."""
        number = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), WATCHED)
        if number < 0:
            error = OSError(ctypes.get_errno(), "inotify_add_watch", str(directory))
            if directory != self.root and isinstance(error, FileNotFoundError | NotADirectoryError):
                return
            raise error
        self._directories[number] = directory
        for child in self._children(directory):
            self.watch(child)

    def refresh(self) -> None:
        """Watch the whole tree anew, as far as it can be: what cannot be watched is left to scans."""
        with contextlib.suppress(OSError):
            self.watch(self.root)

    @property
    def rooted(self) -> bool:
        """Whether the root is watched: a trainer may remove it and make it again."""
        return self.root in self._directories.values()

    @staticmethod
    def _children(directory: Path) -> list[Path]:
        try:
            with os.scandir(directory) as found:
                return [Path(child.path) for child in found if child.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def read(self) -> tuple[set[Path], bool]:
        """Files closed or moved in since the last call, and whether events were lost or cannot come."""
        closed: set[Path] = set()
        lost = False
        while True:
            try:
                data = os.read(self.fd, BUFFER_BYTES)
            except BlockingIOError:
                return closed, lost
            lost |= self._take(data, closed)

    def _take(self, data: bytes, closed: set[Path]) -> bool:
        """Sort one buffer of events into `closed`; whether some are missing."""
        lost, offset = False, 0
        while offset < len(data):
            number, mask, _, length = HEADER.unpack_from(data, offset)
            name = data[offset + HEADER.size : offset + HEADER.size + length].rstrip(b"\0")
            offset += HEADER.size + length
            lost |= bool(mask & Q_OVERFLOW)
            if mask & IGNORED:
                self._directories.pop(number, None)
            elif number in self._directories:
                lost |= not self._event(mask, self._directories[number] / os.fsdecode(name), closed)
        return lost

    def _event(self, mask: int, path: Path, closed: set[Path]) -> bool:
        """Take in one event; False where a new directory cannot be watched (ENOSPC: too many watches)."""
        if not mask & ISDIR:
            if mask & (CLOSE_WRITE | MOVED_TO):
                closed.add(path)
            return True
        try:
            if mask & (CREATE | MOVED_TO):
                self.watch(path)
        except OSError:
            return False
        finally:
            if mask & MOVED_TO:  # its children bring no events: they were written where they came from
                closed.update(path / name for name in scan(path))
        return True

    def close(self) -> None:
        """Give the instance back."""
        os.close(self.fd)
