"""Finds the lineages that arguments mean, and reads their commits without stopping at damaged ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import click

from podferry.cli.options import opened
from podferry.contract.commit import Commit
from podferry.contract.errors import FerryError, InvalidSpec, NotFound, PermanentError, Problem
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader, committed_lineages
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.listing.suggestions import suggested_prefixes
from podferry.storage.store import Store, StoreConfig

MAX_NAMES_SHOWN = 5
"""Names that a message lists."""


@dataclass(frozen=True, slots=True)
class SelectedLineages:
    """What was asked for.

    Attributes:
        destination: The store that holds them.
        lineages: Their names, at least one.
        rest: The arguments that no lineage took.
    """

    destination: Store
    lineages: tuple[str, ...]
    rest: tuple[str, ...] = ()

    @property
    def readers(self) -> list[CommitReader]:
        """A reader of each lineage's commits."""
        return [CommitReader(LineageStore(self.destination, lineage)) for lineage in self.lineages]


@dataclass(frozen=True, slots=True)
class LineageHistory:
    """The commits of one lineage.

    Attributes:
        lineage: Which.
        sequences: The numbers of all its commits, ascending.
        commits: Those that can be read, newest first.
        problems: Why the others cannot, by number.
    """

    lineage: str
    sequences: tuple[int, ...]
    commits: tuple[Commit, ...]
    problems: dict[int, tuple[Problem, ...]]

    @property
    def newest(self) -> Commit | None:
        """The newest commit, None where that one cannot be read."""
        return next((commit for commit in self.commits if commit.sequence == self.sequences[-1]), None)

    @property
    def flat(self) -> list[Problem]:
        """All problems, oldest commit first."""
        return [problem for number in sorted(self.problems) for problem in self.problems[number]]


@asynccontextmanager
async def selected(uri: Uri, words: Sequence[str], config: StoreConfig) -> AsyncIterator[SelectedLineages]:
    """The lineages that `URI [LINEAGE] …` or `URI/LINEAGE …` means; the store is closed at the end.

    A first word that is a lineage below the URI is taken as one. Else the URI itself may be a lineage; one
    that is a destination as well counts as a destination.

    Raises:
        NotFound: There is no such lineage, or none at all; it names the nearest.
    """
    async with opened(uri, config) as store:
        if words and await CommitReader(LineageStore(store, _segment(words[0]))).sequences():
            yield SelectedLineages(store, (_segment(words[0]),), tuple(words[1:]))
            return
        below = tuple(await committed_lineages(store))
        if below and not words:
            yield SelectedLineages(store, below)
            return
    async with opened(uri.parent, config) as above:
        if uri.name and await CommitReader(LineageStore(above, uri.name)).sequences():
            yield SelectedLineages(above, (uri.name,), tuple(words))
            return
    raise await _none(uri, words, below, config)


async def history(reader: CommitReader, limit: int | None = None) -> LineageHistory:
    """The commits of a lineage, at most `limit` of the newest."""
    sequences = await reader.sequences()
    commits: list[Commit] = []
    problems: dict[int, tuple[Problem, ...]] = {}
    for number in reversed(sequences[-limit:] if limit else sequences):
        try:
            commits.append(await reader.read(number))
        except PermanentError as error:
            problems[number] = error.problems
    return LineageHistory(reader.lineage, tuple(sequences), tuple(commits), problems)


def find(known: LineageHistory, wanted: str | None) -> Commit:
    """The newest commit of a name, a checkpoint's folder, or a file; the newest of all for None.

    Raises:
        NotFound: There is none; it names the nearest.
        FerryError: The newest of all cannot be read.
    """
    if wanted is None:
        if known.newest is None:
            raise FerryError(*known.problems[known.sequences[-1]])
        return known.newest
    word = wanted.strip("/")
    for commit in known.commits:
        if word in {commit.name, commit.checkpoint, *(file.name for file in commit.files)}:
            return commit
    names = list(dict.fromkeys(commit.name for commit in known.commits))
    remedy = did_you_mean(word, names, _listing("There are", names))
    measured = f"{len(known.commits)} commits in {known.lineage}"
    raise NotFound(Problem(f"there is no checkpoint {wanted!r}", measured, remedy), *known.flat)


def single(chosen: SelectedLineages) -> CommitReader:
    """Of the lineage, where there is one to choose from.

    Raises:
        InvalidSpec: There are several.
    """
    if len(chosen.lineages) > 1:
        raise InvalidSpec.of(
            "which lineage is not said",
            f"{len(chosen.lineages)} below {chosen.destination.uri}",
            _listing("Add one of", chosen.lineages),
        )
    return chosen.readers[0]


def at_most(words: tuple[str, ...]) -> tuple[str, ...]:
    """A lineage and a checkpoint, or one of them.

    Raises:
        click.UsageError: There are more.
    """
    if len(words) > 2:
        raise click.UsageError(f"unexpected: {' '.join(words[2:])}")
    return words


def only(chosen: SelectedLineages) -> str | None:
    """The one word that no lineage took.

    Raises:
        InvalidSpec: There are several.
    """
    if len(chosen.rest) > 1:
        where = f"{chosen.readers[0].store.uri} is a lineage itself"
        raise InvalidSpec.of("one checkpoint at a time", f"{' '.join(chosen.rest)}; {where}", "Name one")
    return chosen.rest[0] if chosen.rest else None


def ranked(commit: Commit) -> bool:
    """Whether ranks wrote different files of one name."""
    return any(file.rank is not None for file in commit.files)


def _segment(word: str) -> str:
    return word.strip("/")


async def _none(uri: Uri, words: Sequence[str], below: Sequence[str], config: StoreConfig) -> NotFound:
    if words and below:
        remedy = did_you_mean(_segment(words[0]), below, _listing("There are", below))
        return NotFound.of(f"there is no lineage {words[0]!r}", f"{len(below)} below {uri}", remedy)
    near = [one for one in await suggested_prefixes(uri, config) if one != str(uri)]
    remedy = f"Did you mean {' or '.join(near)}?" if near else ""
    return NotFound.of("there is no checkpoint", f"no commit below {uri}", remedy)


def _listing(lead: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"{lead}: {', '.join(names[:MAX_NAMES_SHOWN])}{more}" if names else ""
