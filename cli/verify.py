"""Checks that all that commits list is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from podferry.cli.lineage_args import LineageHistory, history
from podferry.contract.commit import Commit, CommittedFile
from podferry.contract.errors import Problem
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.verify import ContentVerifier

CONCURRENCY = 16
"""Commits that are looked at at a time: many objects each, and few enough for any store."""

Content = tuple[str, str, str, int]
"""Lineage, object, checksum, size: later commits may list files of earlier ones, and one look is enough."""


@dataclass(frozen=True, slots=True)
class CommitVerdict:
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


async def verify_lineages(
    readers: Sequence[CommitReader],
    *,
    deep: bool,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> list[CommitVerdict]:
    """Check every commit of these lineages, newest first.

    Args:
        readers: One of each lineage.
        deep: Read all bytes too, each once, many ranges at a time.
        told: Is told how many bytes have been read, of how many.

    Raises:
        AccessDenied, TemporaryError: The store cannot be asked.
    """
    slots = asyncio.Semaphore(CONCURRENCY)

    async def judged(bare: CommitVerdict) -> CommitVerdict:
        async with slots:
            return await _judged(known[bare.lineage], bare)

    known = {reader.lineage: reader for reader in readers}
    bare = [one for reader in readers for one in _bare(await history(reader))]
    verdicts = await asyncio.gather(*map(judged, bare))
    return await _examined(known, verdicts, told) if deep else verdicts


def _bare(known: LineageHistory) -> Iterator[CommitVerdict]:
    """The commits of a lineage, newest first, with what kept them from being read."""
    read = {commit.sequence: commit for commit in known.commits}
    for number in reversed(known.sequences):
        problems = tuple(_named(one, known.lineage, number) for one in known.problems.get(number, ()))
        yield CommitVerdict(known.lineage, number, number == known.sequences[-1], read.get(number), problems)


async def _judged(reader: CommitReader, bare: CommitVerdict) -> CommitVerdict:
    """The same with what is missing or of the wrong size."""
    return bare if bare.commit is None else _with(bare, await reader.flaws(bare.commit))


async def _examined(
    readers: Mapping[str, CommitReader], verdicts: list[CommitVerdict], told: Callable[[int, int], None]
) -> list[CommitVerdict]:
    """The same with what is wrong with the bytes of those that look whole."""
    files = {content: file for verdict in verdicts for content, file in _contents(verdict).items()}
    total, done = sum(file.size for file in files.values()), 0

    def came(count: int) -> None:
        nonlocal done
        done += count
        told(done, total)

    examiner = ContentVerifier(came)
    found = await asyncio.gather(
        *(examiner.flaw(readers[content[0]].store, file) for content, file in files.items())
    )
    flaws = dict(zip(files, found, strict=True))
    return [
        _with(verdict, filter(None, (flaws[content] for content in _contents(verdict))))
        for verdict in verdicts
    ]


def _contents(verdict: CommitVerdict) -> dict[Content, CommittedFile]:
    if verdict.commit is None or verdict.problems:
        return {}
    return {(verdict.lineage, file.object, file.xxh128, file.size): file for file in verdict.commit.files}


def _with(verdict: CommitVerdict, problems: Iterable[Problem]) -> CommitVerdict:
    named = (_named(problem, verdict.lineage, verdict.sequence) for problem in problems)
    return replace(verdict, problems=(*verdict.problems, *named))


def _named(problem: Problem, lineage: str, sequence: int) -> Problem:
    return Problem(f"{lineage}, commit {sequence}: {problem.what}", problem.measured, problem.remedy)
