"""Which parts of several ranks belong together, and what a commit says about them. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from podferry.contract.commit import Commit, CommittedFile, step_of
from podferry.contract.errors import Problem
from podferry.contract.rank_parts import RankPart, series_and_position


def no_step_problem(name: str) -> Problem | None:
    """Why several pods cannot write a checkpoint of this name together, None where they can.

    A `last.pt` that one rank has already overwritten must not be joined with the one that another has not.
    """
    if step_of(name) is not None:
        return None
    remedy = "Name the step, as in step-100: podferry must tell which files of the pods belong together"
    return Problem("several pods must name the step in what they write together", repr(name), remedy)


def superset_of(before: RankPart, files: tuple[CommittedFile, ...]) -> bool:
    """Whether all that a part holds is there unchanged: files were added to it at most."""
    held = {(file.name, file.size, file.xxh128) for file in before.files}
    return held <= {(file.name, file.size, file.xxh128) for file in files}


def contains(commit: Commit, part: RankPart) -> bool:
    """Whether a commit makes a part real."""
    ranks = {None, part.rank}
    held = {(file.name, file.size, file.xxh128) for file in commit.files if file.rank in ranks}
    return commit.name == part.name and all((f.name, f.size, f.xxh128) in held for f in part.files)


def missing_ranks(parts: Mapping[int, RankPart], world: int, generation: str) -> list[int]:
    """The ranks whose part is not there, or not of this generation."""
    good = {rank for rank, part in parts.items() if (part.world, part.generation) == (world, generation)}
    return [rank for rank in range(world) if rank not in good]


def newer(commits: Mapping[int, Commit], name: str, base: int) -> Commit | None:
    """The commit after `base` of the same step or a later one, None where there is none."""
    kind, place = series_and_position(name)
    for number, commit in commits.items():
        other = series_and_position(commit.name)
        if number > base and other[0] == kind and other[1] >= place:
            return commit
    return None
