"""Resolves lineage and checkpoint arguments, and reads lineages, skipping damaged commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from podferry.cli.options.store_options import store_at
from podferry.contract.destination.commit import Commit
from podferry.contract.destination.kind import Kind, of_main_kind
from podferry.contract.errors import FerryError, InvalidSpec, NotFound, PermanentError, Problem
from podferry.contract.quantity import count_of
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_history import LOOK_BACK
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader, committed_lineages
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.main_kind import newest_main
from podferry.sidecar.checkpoint.restore.choice import LATEST, RestoreSource
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.storage.listing.suggestions import suggested_prefixes
from podferry.storage.store import Store, StoreConfig

MAX_NAMES_SHOWN = 5
"""Names listed in a message."""
CONCURRENT_READS = 32
"""Commits of a lineage that are read at a time."""
CONCURRENT_LINEAGES = 8
"""Lineages that are read at a time: a destination may have hundreds."""


@dataclass(frozen=True, slots=True)
class SelectedLineages:
    """The lineages that the arguments select.

    Attributes:
        destination: The store that contains them.
        lineages: Their names, at least one.
        remaining: The arguments after the lineage.
    """

    destination: Store
    lineages: tuple[str, ...]
    remaining: tuple[str, ...] = ()

    @property
    def readers(self) -> list[CommitReader]:
        """A reader for the commits of each lineage."""
        return [CommitReader(LineageStore(self.destination, lineage)) for lineage in self.lineages]

    def require_one(self) -> CommitReader:
        """Return the reader of the only lineage. Raises `InvalidSpec` if there are several."""
        if len(self.lineages) > 1:
            raise InvalidSpec.of(
                "the lineage is not specified",
                f"{count_of(len(self.lineages), 'lineage')} below {self.destination.uri}",
                _list_names("Add one of", self.lineages),
            )
        return self.readers[0]

    def checkpoint_argument(self) -> str | None:
        """Return the argument after the lineage, or None. Raises `InvalidSpec` if there are several."""
        if len(self.remaining) > 1:
            measured = f"{' '.join(self.remaining)}; {self.readers[0].store.uri} is a lineage itself"
            raise InvalidSpec.of("one checkpoint at a time", measured, "Name one")
        return self.remaining[0] if self.remaining else None


@dataclass(frozen=True, slots=True)
class LineageHistory:
    """The commits of one lineage.

    Attributes:
        lineage: Its name.
        sequences: The sequence numbers of all its commits, ascending.
        commits: The readable commits, newest first.
        problems: By sequence number, why a commit is not readable.
    """

    lineage: str
    sequences: tuple[int, ...]
    commits: tuple[Commit, ...]
    problems: dict[int, tuple[Problem, ...]]

    @property
    def newest(self) -> Commit | None:
        """The newest commit of the main kind, or None if the newest of all is not readable."""
        known = any(commit.sequence == self.sequences[-1] for commit in self.commits)
        return of_main_kind(self.commits)[0] if known else None

    @property
    def all_problems(self) -> list[Problem]:
        """The problems of all commits, oldest commit first."""
        return [problem for number in sorted(self.problems) for problem in self.problems[number]]

    def find(self, wanted: str | None) -> Commit:
        """Return the newest commit with that checkpoint name, folder or file.

        None and `latest` are the newest of the main kind, whether it is sure or doubtful.

        Raises:
            NotFound: There is no such checkpoint; the error suggests the nearest name.
            FerryError: The newest commit is not readable.
        """
        if wanted in {None, LATEST}:
            if self.newest is None:
                raise FerryError(*self.problems[self.sequences[-1]])
            return self.newest
        word = (wanted or "").strip("/")
        for commit in self.commits:
            if word in {commit.name, commit.checkpoint, *(file.name for file in commit.files)}:
                return commit
        names = list(dict.fromkeys(commit.name for commit in self.commits))
        remedy = did_you_mean(word, names, _list_names("There are", names))
        measured = f"{count_of(len(self.commits), 'commit')} in {self.lineage}"
        raise NotFound(Problem(f"there is no checkpoint {wanted!r}", measured, remedy), *self.all_problems)


@asynccontextmanager
async def select_lineages(
    uri: Uri, words: Sequence[str | None], config: StoreConfig
) -> AsyncIterator[SelectedLineages]:
    """Resolve `URI [LINEAGE] …` or `URI/LINEAGE …` (a missing word is None); the store is closed at the end.

    If the first argument names a lineage below the URI, it is that lineage. Otherwise the URI itself may be a
    lineage; a URI that is both a lineage and a destination is treated as a destination.

    Raises:
        NotFound: There is no such lineage, or none at all; the error suggests the nearest name.
    """
    arguments = [word for word in words if word is not None]
    async with store_at(uri, config) as store:
        first = arguments[0].strip("/") if arguments else ""
        if first and await CommitReader(LineageStore(store, first)).sequences():
            yield SelectedLineages(store, (first,), tuple(arguments[1:]))
            return
        below = tuple(await committed_lineages(store))
        if below and not arguments:
            yield SelectedLineages(store, below)
            return
    async with store_at(uri.parent, config) as parent:
        if uri.name and await CommitReader(LineageStore(parent, uri.name)).sequences():
            yield SelectedLineages(parent, (uri.name,), tuple(arguments))
            return
    raise await _not_found(uri, arguments, below, config)


async def read_history(reader: CommitReader, limit: int | None = None) -> LineageHistory:
    """Read the commits of a lineage with their effective confidence.

    With a `limit` at most so many, the newest, and the newest of the main kind if it is none of these.
    """
    found = await _read_history(reader, limit)
    if limit is None or found.newest is None or found.newest.kind is Kind.STATE:
        return found
    main = await newest_main((await reader.history()).newest_first())
    known = main is None or any(commit.sequence == main.sequence for commit in found.commits)
    return found if known or main is None else replace(found, commits=(*found.commits, main))


async def _read_history(reader: CommitReader, limit: int | None) -> LineageHistory:
    confirmed, sequences = await asyncio.gather(reader.confirmed(), reader.sequences())
    wanted = sequences[-limit:] if limit else sequences
    commits, problems = await _read_commits(reader, wanted)
    older: list[Commit] = []
    if any(commit.confidence is None for commit in commits):  # rated by the one before in its series
        older, _ = await _read_commits(reader, sequences[: -len(wanted)][-LOOK_BACK:])
    everything = [*commits, *older]
    rated = await asyncio.gather(
        *(reader.rate(commit, everything[at + 1 :], confirmed) for at, commit in enumerate(commits))
    )
    return LineageHistory(reader.store.lineage, tuple(sequences), tuple(rated), problems)


async def restore_source(selected: SelectedLineages) -> RestoreSource:
    """What `restore` and `export` take: the newest sure checkpoint, `latest`, or the named one.

    A name means its newest version, as in `show`: no other version replaces it.
    """
    wanted, reader = selected.checkpoint_argument(), selected.require_one()
    named = wanted not in {None, LATEST}
    name = (await read_history(reader)).find(wanted).checkpoint if named else None
    return RestoreSource(reader, name, sure_only=wanted != LATEST)


async def read_histories(readers: Sequence[CommitReader], limit: int | None = None) -> list[LineageHistory]:
    """Read the histories of several lineages, in parallel."""
    histories: dict[str, LineageHistory] = {}

    async def read(reader: CommitReader) -> None:
        histories[reader.store.lineage] = await read_history(reader, limit)

    await for_each_limited(readers, read, CONCURRENT_LINEAGES)
    return [histories[reader.store.lineage] for reader in readers]


async def _read_commits(
    reader: CommitReader, numbers: Sequence[int]
) -> tuple[list[Commit], dict[int, tuple[Problem, ...]]]:
    """The readable commits, newest first, and why others are not."""
    commits: dict[int, Commit] = {}
    problems: dict[int, tuple[Problem, ...]] = {}

    async def read(number: int) -> None:
        try:
            commits[number] = await reader.read(number)
        except PermanentError as error:
            problems[number] = error.problems

    await for_each_limited(numbers, read, CONCURRENT_READS)
    return [commits[number] for number in sorted(commits, reverse=True)], problems


def has_rank_files(commit: Commit) -> bool:
    """Whether ranks wrote different files of the same name."""
    return any(file.rank is not None for file in commit.files)


def format_step(commit: Commit | None) -> str:
    """Return the step of a commit for a table, `-` without one."""
    return "-" if commit is None or commit.step is None else f"{commit.step:,}"


async def _not_found(uri: Uri, words: Sequence[str], below: Sequence[str], config: StoreConfig) -> NotFound:
    if words and below:
        remedy = did_you_mean(words[0].strip("/"), below, _list_names("There are", below))
        return NotFound.of(
            f"there is no lineage {words[0]!r}", f"{count_of(len(below), 'lineage')} below {uri}", remedy
        )
    nearest = [prefix for prefix in await suggested_prefixes(uri, config) if prefix != str(uri)]
    otherwise = "Check the destination: the value of --checkpoints, or of podferry.io/checkpoints"
    remedy = f"Did you mean {' or '.join(nearest)}?" if nearest else otherwise
    return NotFound.of("there is no checkpoint", f"no commit below {uri}", remedy)


def _list_names(lead: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"{lead}: {', '.join(names[:MAX_NAMES_SHOWN])}{more}" if names else ""
