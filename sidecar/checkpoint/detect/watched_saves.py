"""What this worker has seen of accepted saves: whether their trainer continued them."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.sidecar.checkpoint.detect.candidate import Candidate, Version
from podferry.sidecar.checkpoint.detect.history import Save


class WatchedSaves:
    """Which saves have ended.

    Calls in each scan: 1. `begin`, 2. `saw` with each candidate.
    """

    def __init__(self) -> None:
        self._continued: set[Version] = set()
        self._unwatched: set[Version] | None = None

    def begin(self, known: Iterable[Save], present: Iterable[Candidate]) -> None:
        """Begin a scan.

        Args:
            known: The accepted saves.
            present: What the scan found. What was not there at the first one, nobody has watched.
        """
        if self._unwatched is not None and not self._continued:
            return  # as in almost every scan
        versions = {save.candidate.version for save in known}
        if self._unwatched is None:
            self._unwatched = versions - {one.version for one in present}
        self._continued &= versions

    def saw(self, candidate: Candidate, known: Iterable[Save]) -> None:
        """It is in the directory now: earlier versions of its name were not the end of their save.

        Neither was a checkpoint whose files all belong to this one by now: a configuration that is written
        before the weights next to it.
        """
        names = candidate.data_files.keys()
        for one in (save.candidate for save in known):
            continues = one.name == candidate.name or one.data_files.keys() <= names
            if continues and not one.is_version_of(candidate):
                self._continued.add(one.version)

    def was_the_end(self, save: Save) -> bool:
        """Whether its trainer is known not to have continued it."""
        return self._was_watched(save) and save.candidate.version not in self._continued

    def has_ended(self, save: Save, later: Candidate) -> bool:
        """Whether nothing was seen to continue a save before a later one, which may replace it."""
        own = save.candidate.name == later.name
        return self._was_watched(save) if own else self.was_the_end(save)

    def _was_watched(self, save: Save) -> bool:
        """Whether this worker has watched its files since."""
        return save.candidate.version not in (self._unwatched or ())
