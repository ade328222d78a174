"""The work of the step `verify_checkpoint`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podferry.components.log_tables import show
from podferry.components.store_access import step_store_config
from podferry.contract.commit import Commit
from podferry.contract.errors import Corrupt, FormatTooNew, NotFound, PermanentError, Problem
from podferry.contract.kfp_inputs import read_kfp_inputs
from podferry.contract.lineage import lineage_problem
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.agent_identity import ANNOUNCEMENT, decode_announcement
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.verify import ContentVerifier
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig

CONCURRENCY = 16
"""Lineages that are looked at at a time: a sweep's worth, and few enough for any store."""
OTHERWISE = "Pass the training's lineage as `lineages`, or set any_run to count every run's"


class Unsafe(PermanentError):
    """A training's newest checkpoint is missing, damaged or not this run's."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be verified.

    Attributes:
        checkpoints: The destination.
        runs: Identifiers of the run.
        lineages: These alone, whichever run committed; empty for those of the run.
        any_run: Every lineage at the destination, whichever run committed.
        full: Read every byte and compare checksums.
    """

    checkpoints: str
    runs: tuple[str, ...] = ()
    lineages: tuple[str, ...] = ()
    any_run: bool = False
    full: bool = False

    @property
    def of_the_run(self) -> bool:
        """Whether only what this run committed counts."""
        return not (self.lineages or self.any_run)


@dataclass(frozen=True, slots=True)
class Verified:
    """A lineage whose newest checkpoint is whole.

    Attributes:
        lineage: Which.
        uri: Where the checkpoint's data lies.
        commit: Its commit.
    """

    lineage: str
    uri: str
    commit: Commit


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of a lineage before its data is looked at.

    Attributes:
        lineage: Which.
        writer: The run whose agent started there last, None where none says.
        commit: The newest, None where there is none or it cannot be read.
        problem: Why it cannot be read.
    """

    lineage: str
    writer: str | None = None
    commit: Commit | None = None
    problem: Problem | None = None

    def belongs_to(self, runs: Sequence[str]) -> bool:
        """Whether one of the runs wrote here last."""
        return self.writer in runs or (self.commit is not None and self.commit.run in runs)


def own_runs(*given: str) -> tuple[str, ...]:
    """The names under which this very run may have committed.

    Args:
        given: Its identifiers, as far as KFP filled them in; the step's own command tells it besides.
    """
    inputs = read_kfp_inputs(sys.argv)
    known = [*given, inputs.run_id if inputs else ""]
    return tuple(dict.fromkeys(name for name in known if name and "{{" not in name))


def verify(question: Question, endpoint: str = "", region: str = "") -> list[Verified]:
    """Look at each lineage's newest checkpoint, and print what was found.

    Raises:
        Unsafe: Everything that is wrong, of all lineages.
        InvalidWish and the store's errors: It cannot be looked at.
    """
    return asyncio.run(_verify(question, step_store_config(endpoint, region)))


async def _verify(question: Question, config: StoreConfig) -> list[Verified]:
    Unsafe.raise_any(filter(None, map(lineage_problem, question.lineages)))
    store = open_store(parse_uri(question.checkpoints), config)
    try:
        return await Verification(store, question).run()
    finally:
        await store.close()


class Verification:
    """One look at a destination."""

    def __init__(self, store: Store, question: Question) -> None:
        self._store = store
        self._question = question
        self._examiner = ContentVerifier()
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def run(self) -> list[Verified]:
        """See `verify`."""
        traces = await self._traces()
        problems: list[Problem] = [] if traces else [await self._nothing()]
        flaws = await asyncio.gather(*map(self._problems, traces))
        problems += (problem for found in flaws for problem in found)
        self._show(traces, flaws)
        Unsafe.raise_any(problems)
        return [
            Verified(
                trace.lineage,
                str(LineageStore(self._store, trace.lineage).uri_of(trace.commit.checkpoint)),
                trace.commit,
            )
            for trace in traces
            if trace.commit is not None
        ]

    async def _traces(self) -> list[Trace]:
        """The lineages that count, sorted."""
        names = self._question.lineages or await self._folders()
        traces = await asyncio.gather(*map(self._trace, sorted(set(names))))
        if not self._question.of_the_run:
            return traces
        return [trace for trace in traces if trace.belongs_to(self._question.runs)]

    async def _folders(self) -> list[str]:
        """Lineages, also those that nothing was committed to: a run that made none must not pass."""
        names = (name[:-1] for name in await self._store.children() if name.endswith("/"))
        return [name for name in names if lineage_problem(name) is None]

    async def _trace(self, lineage: str) -> Trace:
        async with self._slots:
            store = LineageStore(self._store, lineage)
            writer, reader = await self._writer(store), CommitReader(store)
            sequences = await reader.sequences()
            if not sequences:
                return Trace(lineage, writer)
            try:
                return Trace(lineage, writer, await reader.read(sequences[-1]))
            except (Corrupt, NotFound, FormatTooNew) as error:
                why = error.problems[0]
                what = f"{lineage}: its newest commit cannot be read: {why.what}"
                return Trace(lineage, writer, None, Problem(what, why.measured, why.remedy))

    async def _writer(self, store: LineageStore) -> str | None:
        try:
            return (await store.load(ANNOUNCEMENT, decode_announcement)).run
        except (NotFound, Corrupt):
            return None  # A note for people: the commits are the truth.

    async def _problems(self, trace: Trace) -> list[Problem]:
        if trace.problem is not None:
            return [trace.problem]
        commit, question, store = trace.commit, self._question, LineageStore(self._store, trace.lineage)
        if commit is None:
            remedy = "Look at the log of the training's podferry container: nothing was uploaded"
            return [Problem(f"{trace.lineage} has no committed checkpoint", str(store.uri), remedy)]
        if question.of_the_run and commit.run not in question.runs:
            measured = f"{commit.name} of run {commit.run or 'none'}, {commit.created:%Y-%m-%d %H:%M:%S %Z}"
            remedy = f"This run uploaded nothing. Where nothing was left to train: {OTHERWISE}"
            return [Problem(f"{trace.lineage}: its newest checkpoint is another run's", measured, remedy)]
        async with self._slots:
            flaws = await CommitReader(store).missing_objects(commit)
            if not flaws and question.full:
                looked = (self._examiner.find_damage(store, file) for file in commit.files)
                flaws = [flaw for flaw in await asyncio.gather(*looked) if flaw is not None]
        return [
            Problem(
                f"{store.path(commit.checkpoint)}: {flaw.what}",
                flaw.measured,
                flaw.remedy or "Restore the object, or train on from an earlier checkpoint",
            )
            for flaw in flaws
        ]

    async def _nothing(self) -> Problem:
        """Why there is nothing to verify."""
        found = await self._folders()
        runs = ", ".join(self._question.runs) or "none is given: use podferry.components.verify"
        measured = f"{self._store.uri} holds {len(found)} lineages; the run: {runs}"
        what = "no lineage at the destination" if self._question.any_run else "this run trained no lineage"
        remedy = f"Check the destination; where the training came from KFP's cache: {OTHERWISE}"
        return Problem(what, measured, remedy)

    def _show(self, traces: Iterable[Trace], flaws: Iterable[list[Problem]]) -> None:
        columns = ("lineage", "newest checkpoint", "step", "commit", "files", "size", "verdict")
        rows = [_row(trace, len(found)) for trace, found in zip(traces, flaws, strict=True)]
        how = "names, sizes and checksums" if self._question.full else "names and sizes"
        show(f"{self._store.uri}: {how}", columns, rows)


def _row(trace: Trace, problems: int) -> tuple[str, ...]:
    verdict = f"{problems} problems" if problems else "whole"
    commit = trace.commit
    if commit is None:
        return (trace.lineage, "", "", "", "", "", verdict)
    step = "" if commit.step is None else str(commit.step)
    size = format_bytes(commit.bytes)
    return (trace.lineage, commit.name, step, str(commit.sequence), str(len(commit.files)), size, verdict)
