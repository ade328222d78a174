"""Chooses what to restore: which lineage, and which of its commits, best first.

`auto` takes the newest sure commit, `latest` the newest, sure or doubtful, both of the lineage's main kind
(`podferry.contract.destination.kind`): nobody resumes from a plot. A name is the newest version of that
checkpoint, whatever it is. Damaged commits are passed over in every case.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import FerryError, NotFound, Problem
from podferry.contract.status import PassedOver
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri
from podferry.sidecar.checkpoint.commit.commit_history import CommitHistory
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader, lineage_remedy
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.main_kind import main_commits
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

MAX_NAMES_SHOWN = 5
MAX_PASSED_OVER = 20
"""Commits that were passed over and are remembered with the reason; of the others only the number is."""
MAX_SUGGESTED = 1000
"""Names that a suggestion for a misspelled one is chosen from."""
AUTO, LATEST, NEVER = "auto", "latest", "never"


@dataclass(frozen=True, slots=True)
class RestoreSource:
    """Where to restore from.

    Attributes:
        reader: The lineage's: this agent's own lineage, or another one.
        name: The name or the folder of the checkpoint to restore, None for the newest.
        required: Whether it is an error if there is none.
        sure_only: Without a name, whether doubtful commits are passed over.
        known: The lineage as it was listed before: what was read is not read again.
    """

    reader: CommitReader
    name: str | None = None
    required: bool = True
    sure_only: bool = True
    known: CommitHistory | None = None

    def names(self, commit: Commit) -> bool:
        """Whether it names this commit, or none."""
        return self.name in {None, commit.name, commit.checkpoint}

    def doubts(self, commit: Commit) -> bool:
        """Whether a commit is passed over because it is doubtful."""
        return self.name is None and self.sure_only and not commit.is_sure


class RestoreChoice:
    """The commits to try, and those that were passed over.

    Attributes:
        passed_over: Newest first, at most `MAX_PASSED_OVER`.
        passed_over_count: How many there are.
    """

    def __init__(self, source: RestoreSource, history: CommitHistory) -> None:
        self._source, self._history = source, history
        self._passed_over: dict[int, PassedOver] = {}
        self._count = 0
        self._names: dict[str, None] = {}
        self._newest_doubtful: Commit | None = None

    async def candidates(self) -> AsyncIterator[Commit]:
        """The commits to try, best first.

        Raises:
            FormatTooNew: The next one was written by a later podferry.
        """
        commits = self._history.newest_first()
        async for commit in commits if self._source.name is not None else main_commits(commits):
            if len(self._names) < MAX_SUGGESTED:
                self._names[commit.name] = None
            if self._source.doubts(commit):
                self._newest_doubtful = self._newest_doubtful or commit
                self.pass_over(commit, describe_doubts(commit))
            elif self._source.names(commit):
                yield commit

    def pass_over(self, commit: Commit, reason: str) -> None:
        """Record that a commit is not restored."""
        self._count += 1
        if len(self._passed_over) < MAX_PASSED_OVER:
            self._passed_over[commit.sequence] = PassedOver(commit.name, commit.sequence, reason)

    @property
    def passed_over(self) -> tuple[PassedOver, ...]:
        """Commits that were passed over; the name of an unreadable one is its number."""
        found = {**self._passed_over, **{one.sequence: one for one in self._unreadable()}}
        return tuple(found[number] for number in sorted(found, reverse=True)[:MAX_PASSED_OVER])

    @property
    def passed_over_count(self) -> int:
        """How many there are."""
        return self._count + len(self._unreadable())

    def _unreadable(self) -> list[PassedOver]:
        if self._source.name is not None:
            return []  # whether it was the named one is unknown
        damaged = self._history.damaged.items()
        return [PassedOver(f"commit {number}", number, error.problems[0].what) for number, error in damaged]

    async def failure(self, errors: Sequence[FerryError] = ()) -> NotFound:
        """Why nothing can be restored though it is required; `errors` are those of damaged commits."""
        damaged = [*errors, *self._history.damaged.values()]
        problems = [problem for error in damaged for problem in error.problems]
        if self._newest_doubtful is not None:
            problems = [self._none_is_sure(self._newest_doubtful), *problems]
        elif self._source.name is not None and self._names and not errors:
            problems = [self._no_such_name(self._source.name), *problems]
        return NotFound(*(problems or [await self._no_commit()]))

    def _none_is_sure(self, newest: Commit) -> Problem:
        uri = self._source.reader.store.uri
        what = f"no checkpoint below {uri} is proven complete"
        remedy = (
            f"Take a doubtful one by its name: {newest.name}, or {uri / newest.checkpoint} from elsewhere; "
            f"the word {LATEST} takes the newest of either kind"
        )
        return Problem(what, describe_passed_over(self.passed_over, self.passed_over_count), remedy)

    def _no_such_name(self, name: str) -> Problem:
        names = list(self._names)
        remedy = did_you_mean(name, names, f"There are: {', '.join(names[:MAX_NAMES_SHOWN])}")
        measured = f"{len(self._history.numbers)} below {self._source.reader.store.uri}"
        return Problem(f"there is no checkpoint {name!r} to restore", measured, remedy)

    async def _no_commit(self) -> Problem:
        store = self._source.reader.store
        remedy = await lineage_remedy(store.destination, store.lineage)
        return Problem("there is no checkpoint to restore", f"no commit below {store.uri}", remedy)


def describe_doubts(commit: Commit) -> str:
    """Why a commit may be incomplete, in one line."""
    reasons = [
        doubt.reason if doubt.rank is None else f"rank {doubt.rank}: {doubt.reason}"
        for doubt in commit.doubts
    ]
    more = f" and {len(reasons) - MAX_NAMES_SHOWN} more" if len(reasons) > MAX_NAMES_SHOWN else ""
    return f"doubtful: {'; '.join(reasons[:MAX_NAMES_SHOWN])}{more}"


def describe_passed_over(passed_over: Sequence[PassedOver], count: int) -> str:
    """The commits that were passed over and why, in one line."""
    shown = [f"{one.name} ({one.reason})" for one in passed_over[:MAX_NAMES_SHOWN]]
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    return f"{', '.join(shown)}{more}"


async def restore_source_of(
    setting: str, own: CommitReader, config: StoreConfig, known: CommitHistory | None = None
) -> RestoreSource | None:
    """The source that a `restore` annotation names, None for `never`.

    `auto` is the newest sure commit of the agent's own lineage, if any; `latest` is the newest of either
    kind, and requires one; a name is a checkpoint of the own lineage; a URI is a lineage, from which it takes
    the newest sure one, or a checkpoint's folder in one (a warm start).

    Args:
        setting: The annotation's value.
        own: The own lineage's.
        config: How to reach the store that a URI names.
        known: The own lineage as it was listed before.
    """
    if setting == NEVER:
        return None
    if setting in {AUTO, LATEST}:
        latest = setting == LATEST
        return RestoreSource(own, required=latest, sure_only=not latest, known=known)
    if "://" not in setting and not setting.startswith("/"):
        return RestoreSource(own, name=setting, known=known)
    return await _source_at(parse_uri(setting), config)


async def _source_at(uri: Uri, config: StoreConfig) -> RestoreSource:
    """`…/<lineage>` if there are commits below it, else `…/<lineage>/<checkpoint>`."""
    lineage = CommitReader(LineageStore(open_store(uri.parent, config), uri.name))
    history = await lineage.history()
    if history.numbers or not uri.parent.name:
        return RestoreSource(lineage, known=history)
    above = CommitReader(LineageStore(open_store(uri.parent.parent, config), uri.parent.name))
    history_above = await above.history()
    if history_above.numbers:
        await lineage.store.destination.close()
        return RestoreSource(above, uri.name, known=history_above)
    await above.store.destination.close()
    return RestoreSource(lineage, known=history)
