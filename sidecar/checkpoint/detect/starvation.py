"""Checkpoints that are written again and again before their pause is over, and those that wait for them.

Without an exception neither would be uploaded while training, and a lost node would cost all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from podferry.sidecar.checkpoint.detect.candidate import Candidate, Version

STARVED_PAUSES = 3
"""A checkpoint starves after so many long pauses: a trainer that saves that rarely is uploaded in between."""


class Starvation:
    """Remembers which version of each name was quiet for the short pause first, and since when it waits.

    `seconds` is how long a name waits until it starves.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first: dict[str, tuple[float, Candidate]] = {}

    def update(self, waiting: Iterable[Candidate], kept: Collection[str], now: float) -> None:
        """Record a scan.

        Args:
            waiting: Those that are quiet for the short pause and wait for the long one.
            kept: The names that are in the directory and were not accepted.
            now: By a monotonic clock, in seconds.
        """
        for candidate in waiting:
            self._first.setdefault(candidate.name, (now, candidate))
        self._first = {name: one for name, one in self._first.items() if name in kept}

    def starves(self, candidate: Candidate, now: float) -> bool:
        """Whether all files of that first version were written again: those of a slow save are not."""
        since, first = self._first.get(candidate.name, (now, candidate))
        files = candidate.data_files
        return now - since >= self._seconds and all(
            name in files and files[name] != identity for name, identity in first.data_files.items()
        )


class HeldUp:
    """Remembers since when each checkpoint has waited for an older one; after `seconds` it is overdue."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[Version, float] = {}

    def update(self, waiting: Iterable[Candidate], now: float) -> None:
        """Record which ones wait in a scan, by a monotonic clock, in seconds."""
        self._since = {one.version: self._since.get(one.version, now) for one in waiting}

    def is_overdue(self, candidate: Candidate, now: float) -> bool:
        """Whether it has waited for so long that it overtakes what it waits for."""
        return now - self._since.get(candidate.version, now) >= self._seconds
