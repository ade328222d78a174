"""Who has a file of a checkpoint open for writing: asks the kernel, the cheapest reliable way first.

A read lease answers for each file (`write_lease.py`), if the agent runs as the file's owner. Else /proc
answers (`process_files.py`): what it shows as open is open, but it shows only processes that the agent may
look at. In a pod these are the agent's own, unless the pod shares its process namespace. If neither answers,
nobody can know.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from podferry.sidecar.checkpoint.detect.process_files import FileKey, survey
from podferry.sidecar.checkpoint.detect.write_lease import is_open_for_writing

PROC = Path("/proc")
STRUCTURAL = {
    errno.EACCES: "another user's files, and no CAP_LEASE",
    errno.EINVAL: "not on this file system",
    errno.EOPNOTSUPP: "not a local file system",
}
"""Errors of a lease that every other file of the same owner and file system would meet too."""


class OpenFiles:
    """Answers whether files are open for writing; blocks for up to a quarter of a second.

    Args:
        sees_writers: Whether the trainer's processes are in this process namespace: if so, a file that /proc
            shows nowhere is not open.
        proc: Where /proc is.
        by_lease: Whether a file is open, by a lease.
    """

    def __init__(
        self,
        *,
        sees_writers: bool,
        proc: Path = PROC,
        by_lease: Callable[[Path], bool] = is_open_for_writing,
    ) -> None:
        self._sees_writers, self._proc, self._by_lease = sees_writers, proc, by_lease
        self._granted: set[int] = set()
        self._refused: dict[tuple[int, int], str] = {}
        self._covered: bool | None = None

    def is_open(self, path: Path) -> bool | None:
        """Whether any process but this one has it open for writing; None: that cannot be known."""
        return self.look([path])[path]

    def look(self, paths: Iterable[Path]) -> dict[Path, bool | None]:
        """`is_open` for several files; /proc is read at most once. A file that is gone has None."""
        answers: dict[Path, bool | None] = {}
        unknown: dict[Path, os.stat_result] = {}
        for path in paths:
            answers[path] = None
            with contextlib.suppress(OSError):
                stat = path.stat(follow_symlinks=False)
                answers[path] = answer = self._ask_lease(path, stat)
                if answer is None:
                    unknown[path] = stat
        return answers | (self._ask_processes(unknown) if unknown else {})

    def _ask_lease(self, path: Path, stat: os.stat_result) -> bool | None:
        """What a lease says; a refusal that the next file would meet too is remembered."""
        kind = (stat.st_dev, stat.st_uid)
        if kind in self._refused:
            return None
        try:
            found = self._by_lease(path)
        except OSError as error:
            if error.errno in STRUCTURAL:
                self._refused[kind] = STRUCTURAL[error.errno]
            return None
        self._granted.add(stat.st_uid)
        return found

    def _ask_processes(self, files: Mapping[Path, os.stat_result]) -> dict[Path, bool | None]:
        """What /proc says; nothing if it cannot be read."""
        try:
            found = survey(files, self._proc)
        except OSError:
            return {}
        self._covered = covered = self._sees_writers and found.covered
        absent = False if covered else None
        return {path: FileKey.of(stat) in found.open or absent for path, stat in files.items()}

    def describe(self) -> str:
        """One line for people: what has answered so far."""
        parts = [f"leases for files of user {uid}" for uid in sorted(self._granted)]
        for (_, uid), reason in sorted(self._refused.items()):
            parts.append(f"no leases for files of user {uid} ({reason})")
        if self._covered is not None:
            parts.append("/proc" if self._covered else "/proc without the trainer's processes")
        return ", ".join(dict.fromkeys(parts)) or "not asked yet"
