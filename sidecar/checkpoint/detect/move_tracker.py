"""Tracks what was moved into the checkpoint directory, and what was written where it is.

A rename proves what was whole when it happened: nothing that was written at its final name, before or after.
Fed by the watch and by scans; does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from podferry.sidecar.checkpoint.detect.candidate import Candidate, Version


class MoveTracker:
    """Tracks moves of files and directories.

    Attributes:
        moved: The names that were moved in since the last scan.
    """

    def __init__(self) -> None:
        self.moved: set[str] = set()
        self._moved_in: dict[str, Version] = {}
        self._written: set[str] = set()

    def report(self, moved: Collection[str], created: Collection[str]) -> None:
        """Record what the watch has reported: names that were moved in, and directories that were created."""
        self.moved |= set(moved)
        self._written = (self._written | set(created)) - set(moved)

    def update(
        self, present: Mapping[str, Candidate], closed: Collection[str], is_directory: Callable[[str], bool]
    ) -> None:
        """Record a scan. In which version a directory was moved in counts: files may be added later.

        Args:
            present: The checkpoints.
            closed: The names of the files whose close was reported before the scan.
            is_directory: Whether a name is that of a directory, which may be empty still.
        """
        moved = {name: one.version for name, one in present.items() if name in self.moved}
        self._moved_in = {name: one for name, one in (self._moved_in | moved).items() if name in present}
        late = {name for name in closed if name not in self.moved}
        for name in [name for name in self._moved_in if _is_among(late, present[name])]:
            del self._moved_in[name]
            self._written.add(name)
        self._written = {name for name in self._written if is_directory(name)}
        self.moved = set()

    def was_moved_in(self, candidate: Candidate) -> bool:
        """Whether a directory was moved in with all its files, none of them open for writing."""
        return self._moved_in.get(candidate.name) == candidate.version

    def was_written_in_place(self, candidate: Candidate) -> bool:
        """Whether a directory was created at its name, or written to since it was moved in."""
        return candidate.name in self._written


def _is_among(names: Collection[str], candidate: Candidate) -> bool:
    """Whether one of some names is a file within a candidate's directory."""
    return any(name in names for name in candidate.data_files if name.startswith(f"{candidate.name}/"))
