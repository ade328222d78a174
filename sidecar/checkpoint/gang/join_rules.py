"""Which parts of several ranks belong together, and what a commit says about them. Pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podferry.contract.destination.commit import Commit, CommittedFile, step_of
from podferry.contract.destination.rank_parts import RankPart, series_and_position
from podferry.contract.errors import Problem


def no_step_problem(name: str) -> Problem | None:
    """Why several pods cannot write a checkpoint of this name together, or None if they can.

    A `last.pt` that one rank has already overwritten must not be joined with an older one of another rank.
    """
    if step_of(name) is not None:
        return None
    remedy = "Put the step in the name, as in step-100: it shows which files of the pods belong together"
    what = "checkpoints that several pods write together need a step in their name"
    return Problem(what, repr(name), remedy)


def superset_of(part: RankPart, files: tuple[CommittedFile, ...]) -> bool:
    """Whether the files contain a part's unchanged: at most, files were added to it."""
    return _contents(part.files) <= _contents(files)


def contains(commit: Commit, part: RankPart) -> bool:
    """Whether a commit makes a part durable."""
    ranks = {None, part.rank}
    committed = _contents(file for file in commit.files if file.rank in ranks)
    return commit.name == part.name and _contents(part.files) <= committed


def missing_ranks(parts: Mapping[int, RankPart], world: int, epoch: str) -> list[int]:
    """The ranks whose part does not exist or is not of this epoch."""
    present = {rank for rank, part in parts.items() if (part.world, part.epoch) == (world, epoch)}
    return [rank for rank in range(world) if rank not in present]


def newer(commits: Mapping[int, Commit], name: str, base: int) -> Commit | None:
    """A commit after `base` of the same step or a later one, or None."""
    series, position = series_and_position(name)
    for number, commit in commits.items():
        other_series, other_position = series_and_position(commit.name)
        if number > base and other_series == series and other_position >= position:
            return commit
    return None


def _contents(files: Iterable[CommittedFile]) -> set[tuple[str, int, str]]:
    return {(file.name, file.size, file.xxh128) for file in files}
