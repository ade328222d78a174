"""Remembers which of the agent's commits are doubtful, until something proves them complete."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.contract.destination.commit import Commit, Doubt
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.runtime.file_identity import Files
from podferry.sidecar.state.journal import CheckpointRecord, DoubtfulCommit

MAX_DOUBTFUL = 100
"""Doubtful commits that are remembered: a later save proves the one before, so only few are ever open."""


class DoubtLedger:
    """The doubtful commits in the journal's checkpoint record; `rank` is None if one pod writes all."""

    def __init__(self, record: CheckpointRecord, rank: int | None) -> None:
        self._record, self._rank = record, rank

    def doubts(self, name: str, files: Files) -> tuple[Doubt, ...]:
        """The open doubts about the committed version of a checkpoint with exactly these files."""
        version = Candidate(name, files).version
        found = [one for one in self._record.doubtful if (one.name, one.files) == version]
        return found[-1].doubts if found else ()

    def add(self, candidate: Candidate, commit: Commit) -> None:
        """Record a commit: it stays doubtful, or is confirmed at once if it was proven while it was sent."""
        own = tuple(doubt for doubt in commit.doubts if doubt.rank in {None, self._rank})
        if not own:
            return
        found = DoubtfulCommit(commit.sequence, commit.name, commit.checkpoint, candidate.version[1], own)
        if candidate.doubts:
            self._record.doubtful[:] = [*self._record.doubtful, found][-MAX_DOUBTFUL:]
        else:
            self._record.confirming.append(found)

    def settle(self, proven: Iterable[Candidate]) -> bool:
        """These versions are proven complete; returns whether a commit of theirs is to be confirmed now."""
        versions = {candidate.version for candidate in proven}
        found = [one for one in self._record.doubtful if (one.name, one.files) in versions]
        self._record.doubtful[:] = [one for one in self._record.doubtful if one not in found]
        self._record.confirming += found
        return bool(found)

    def confirming(self) -> list[DoubtfulCommit]:
        """The commits whose confirmation is not written yet, oldest first."""
        return list(self._record.confirming)

    def confirmed(self, commit: DoubtfulCommit) -> None:
        """Its confirmation is written."""
        self._record.confirming[:] = [one for one in self._record.confirming if one != commit]
