"""When checkpoints last lost a file: one that is being deleted looks quiet."""

from __future__ import annotations

from collections.abc import Mapping

from podferry.sidecar.checkpoint.detect.candidate import Candidate

NEVER = float("-inf")


class Shrinking:
    """Compares the checkpoints of each scan with those of the one before.

    A pointer that moves on to the next checkpoint does not count, nor do temporary files: a checkpoint that
    gains a file is not being deleted.
    """

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def update(self, before: Mapping[str, Candidate], present: Mapping[str, Candidate], now: float) -> None:
        """Look at a scan.

        Args:
            before: What the previous one found, by name.
            present: What this one found.
            now: Seconds.
        """
        self._at = {name: at for name, at in self._at.items() if name in present}
        for name in before.keys() & present.keys():
            known, files = before[name].data_files, present[name].data_files
            if files.items() - known.items():
                self._at.pop(name, None)
            elif known.keys() - dict(present[name].files).keys():
                self._at[name] = now

    def last(self, name: str) -> float:
        """When a checkpoint last lost a file; `NEVER` if it has not, or has gained one since."""
        return self._at.get(name, NEVER)
