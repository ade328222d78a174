"""Checks that all that commits list is there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from podferry.cli.lineages import history
from podferry.contract.commit import Commit, CommittedFile
from podferry.contract.errors import Changed, Corrupt, NotFound, Problem
from podferry.sidecar.catalogue import Catalogue
from podferry.storage.store import Store

CHUNK = 16 << 20
"""Bytes of one request: as for a restore."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one commit.

    Attributes:
        lineage: Of which lineage.
        sequence: Its number.
        newest: Whether no later one exists in its lineage.
        commit: The commit, None where it cannot be read.
        problems: What is missing or damaged; empty where it is whole.
    """

    lineage: str
    sequence: int
    newest: bool
    commit: Commit | None
    problems: tuple[Problem, ...]

    @property
    def state(self) -> str:
        """In one or two words."""
        if self.commit is None:
            return "not readable"
        return "damaged" if self.problems else "whole"


async def verify_lineages(catalogue: Catalogue, lineages: Sequence[str], *, deep: bool) -> list[Verdict]:
    """Check every commit of these lineages, newest first; with `deep` all bytes are read.

    Raises:
        AccessDenied, TemporaryError: The store cannot be asked.
    """
    return [
        verdict for lineage in lineages for verdict in await _verify_lineage(catalogue, lineage, deep=deep)
    ]


async def _verify_lineage(catalogue: Catalogue, lineage: str, *, deep: bool) -> list[Verdict]:
    known = await history(catalogue, lineage)
    read = {commit.sequence: commit for commit in known.commits}
    seen: dict[tuple[str, str, int], Problem | None] = {}
    verdicts = []
    for number in reversed(known.sequences):
        commit = read.get(number)
        problems = known.problems.get(number, ())
        if commit is not None:
            problems = await _flaws(catalogue, commit, seen, deep=deep)
        named = tuple(_named(problem, lineage, number) for problem in problems)
        verdicts.append(Verdict(lineage, number, number == known.sequences[-1], commit, named))
    return verdicts


async def _flaws(
    catalogue: Catalogue,
    commit: Commit,
    seen: dict[tuple[str, str, int], Problem | None],
    *,
    deep: bool,
) -> tuple[Problem, ...]:
    flaws = await catalogue.flaws(commit)
    if flaws or not deep:
        return tuple(flaws)
    for file in commit.files:
        # Later commits may list files of earlier ones: one look is enough.
        key = (file.object, file.sha256, file.size)
        if key not in seen:
            seen[key] = await _content(catalogue.store, commit.lineage, file)
    found = (seen[file.object, file.sha256, file.size] for file in commit.files)
    return tuple(problem for problem in found if problem is not None)


async def _content(store: Store, lineage: str, file: CommittedFile) -> Problem | None:
    """What is wrong with the bytes of a file, None where they are those that were committed."""
    name = f"{lineage}/{file.object}"
    digest = hashlib.sha256()
    try:
        for start in range(0, file.size, CHUNK):
            data = await store.read(name, start, min(CHUNK, file.size - start))
            await asyncio.to_thread(digest.update, data)
    except (NotFound, Corrupt, Changed) as error:
        return error.problems[0]
    if digest.hexdigest() == file.sha256:
        return None
    measured = f"sha256 {digest.hexdigest()}, the commit says {file.sha256}"
    return Problem(f"{store.uri / name} is damaged", measured)


def _named(problem: Problem, lineage: str, sequence: int) -> Problem:
    return Problem(f"{lineage}, commit {sequence}: {problem.what}", problem.measured, problem.remedy)
