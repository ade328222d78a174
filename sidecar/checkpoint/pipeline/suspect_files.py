"""Which files of durable versions may have new content although their identity is the old one.

Inode, size and modification time stay the same when a trainer writes through a memory mapping (tmpfs need not
touch the time), patches a file and sets its time back, or copies another one over it with its times. A file
is suspect if

* it was closed after writing, or moved in, and still has the old identity. The end of a writable mapping is
  reported as a close, on ext4 and on tmpfs: `tests/sidecar/checkpoint/detect/test_write_lease.py` shows it,
* its change time differs from the last look, other than by our own links, or
* it is open for writing, or was when the agent last asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity

NamedFile = tuple[str, FileIdentity]


class SuspectFiles:
    """Compares each look at the files with the one before.

    Args:
        root: The checkpoint directory.
        open_files: Says which files are open for writing; None if nobody asks.
        ask_seconds: Between two such questions.
        monotonic: A clock, seconds.
    """

    def __init__(
        self,
        root: Path,
        open_files: OpenFiles | None,
        ask_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self._open_files = root, open_files
        self._ask_seconds, self._monotonic = ask_seconds, monotonic
        self._ask_at = float("-inf")
        self._requested = self._answered = 0
        self._closed: set[NamedFile] = set()
        self._changed: dict[NamedFile, int] = {}
        self._linked: dict[NamedFile, int] = {}
        self._open: set[NamedFile] = set()

    def note_closes(
        self, closed: set[str], settled: Mapping[str, Candidate], present: Mapping[str, Candidate]
    ) -> None:
        """Record the closes that were reported before a scan.

        Args:
            closed: The names of the files.
            settled: The versions that were known before the scan, durable or not yet.
            present: What the scan found: a file with a new identity is a new version anyway.
        """
        known: set[NamedFile] = set()
        for name in settled.keys() & present.keys():
            known.update(set(settled[name].files).intersection(present[name].files))
        self._closed = {one for one in known if one in self._closed or one[0] in closed}
        self._changed = {one: at for one, at in self._changed.items() if one in known}

    def find(self, durable: Mapping[str, Candidate]) -> dict[str, set[str]]:
        """The suspect files of each checkpoint, each cause once; reads the file system.

        A change time that was never seen is suspect: an earlier worker may have seen another one.
        """
        files = {one for candidate in durable.values() for one in candidate.data_files.items()}
        found = (self._closed & files) | self._find_changed(files) | self._find_open(files)
        self._closed -= files
        suspect = {
            name: {file for file, identity in candidate.files if (file, identity) in found}
            for name, candidate in durable.items()
        }
        return {name: names for name, names in suspect.items() if names}

    def _find_changed(self, files: set[NamedFile]) -> set[NamedFile]:
        found = {one: at for one in files if (at := self._change_time(one)) is not None}
        suspect = {one for one, at in found.items() if self._changed.get(one) != at}
        self._changed |= found
        return suspect

    def _find_open(self, files: set[NamedFile]) -> set[NamedFile]:
        requested = self._requested
        is_due = requested != self._answered or self._monotonic() >= self._ask_at
        if self._open_files is None or not files or not is_due:
            return set()
        before = self._open & files
        self._open = self._open_among(self._open_files, files)
        self._answered = requested
        self.pause(self._ask_seconds)
        return before | self._open

    def _open_among(self, open_files: OpenFiles, files: set[NamedFile]) -> set[NamedFile]:
        answers = open_files.look(self._root / file for file, _ in files)
        return {one for one in files if answers[self._root / one[0]]}

    def ask(self) -> None:
        """Ask for open files at the next look, whatever the pause: someone waits for the answer."""
        self._requested += 1

    def open_now(self, candidate: Candidate) -> frozenset[str]:
        """Its files that are open for writing, or may be."""
        if self._open_files is None:
            return frozenset()
        found = self._open_among(self._open_files, set(candidate.data_files.items()))
        return frozenset(file for file, _ in found)

    def pause(self, seconds: float) -> None:
        """Do not ask for open files before: what stays open would be read all the time."""
        self._ask_at = max(self._ask_at, self._monotonic() + seconds)

    def trust(self, candidate: Candidate) -> None:
        """The content of its files is known as of now."""
        self._changed |= self._change_times(candidate)

    def link(self, candidate: Candidate) -> None:
        """Its files have just been linked, and will be read."""
        self._linked |= self._change_times(candidate)

    def release(self, hold: HeldCheckpoint) -> frozenset[str]:
        """Release a hold whose content is at the destination; the files that are suspect all the same.

        Their change time has moved since they were linked, or they were closed again, or an earlier worker
        linked them.
        """
        before = self._change_times(hold.candidate)
        explained = {one for one, at in before.items() if self._linked.pop(one, None) == at}
        hold.release()
        after = self._change_times(hold.candidate)
        self._changed |= {one: at for one, at in after.items() if one in explained}
        return frozenset(one[0] for one in after if one not in explained or one in self._closed)

    def _change_times(self, candidate: Candidate) -> dict[NamedFile, int]:
        """Of the files that still have their identity."""
        found = {one: self._change_time(one) for one in candidate.data_files.items()}
        return {one: at for one, at in found.items() if at is not None}

    def _change_time(self, file: NamedFile) -> int | None:
        """Nanoseconds since the epoch; None if the file has another identity by now."""
        try:
            # For each file at each scan: a `Path` costs several times as much.
            stat = os.lstat(f"{self._root}/{file[0]}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return stat.st_ctime_ns if FileIdentity.of(stat) == file[1] else None
