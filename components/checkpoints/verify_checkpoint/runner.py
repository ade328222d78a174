"""Runs the step `verify_checkpoint`: verifies the newest checkpoint of each lineage."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podferry.components.checkpoints.verify_checkpoint.lineage_head import LineageHead, read_head
from podferry.components.log_tables import print_line, print_table
from podferry.components.store_access import step_store_config
from podferry.components.trained_task.locate import TrainedPlace, places_of
from podferry.components.verdict import verdict
from podferry.contract.destination.commit import Commit
from podferry.contract.errors import PermanentError, Problem
from podferry.contract.exit_codes import EXIT_DOUBTFUL
from podferry.contract.kfp_inputs import read_kfp_inputs
from podferry.contract.lineage import lineage_problem
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader, lineage_remedy
from podferry.sidecar.checkpoint.commit.content_verifier import ContentVerifier
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig

CONCURRENCY = 16
"""Lineages verified in parallel: enough for a sweep, and few enough for any store."""
REMEDY = "Pass the training's task as `of`, or set any_run to count every run's"


class Unsafe(PermanentError):
    """The newest checkpoint of a lineage is missing, damaged, or not from this run."""


class Doubtful(Unsafe):
    """All checkpoints are committed and intact, and nothing proves that one of the newest is complete."""

    exit_code = EXIT_DOUBTFUL


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify.

    Attributes:
        checkpoints: The destination.
        runs: Identifiers of the run.
        lineages: Only these lineages, committed by any run; empty for those of the run.
        any_run: All lineages at the destination, committed by any run.
        full: Read every byte and compare checksums.
        allow_doubtful: Only name doubtful checkpoints.
        otherwise: The lineages to verify instead, if nothing is in `lineages`.
    """

    checkpoints: str
    runs: tuple[str, ...] = ()
    lineages: tuple[str, ...] = ()
    any_run: bool = False
    full: bool = False
    allow_doubtful: bool = False
    otherwise: tuple[str, ...] = ()

    @property
    def this_run_only(self) -> bool:
        """Whether the checkpoints must be from this run."""
        return not (self.lineages or self.any_run)


@dataclass(frozen=True, slots=True)
class VerifiedLineage:
    """A lineage whose newest checkpoint is intact: its name, the location of the data, and the commit."""

    name: str
    uri: str
    commit: Commit


def run_names(*given: str) -> tuple[str, ...]:
    """Return the names of this run: those that KFP filled in, and the one in the step's own command line."""
    inputs = read_kfp_inputs(sys.argv)
    known = [*given, inputs.run_id if inputs else ""]
    return tuple(dict.fromkeys(name for name in known if name and "{{" not in name))


def verify(request: VerifyRequest, endpoint: str = "", region: str = "") -> list[VerifiedLineage]:
    """Verify the newest checkpoint of each lineage, and print the results.

    Raises:
        Unsafe: All problems of all lineages.
        Doubtful: There are none except doubts.
        InvalidSpec and the store's errors: The destination cannot be read.
    """
    return asyncio.run(_verify(request, step_store_config(endpoint, region)))


def verify_or_exit(
    request: VerifyRequest, endpoint: str = "", region: str = "", of: Sequence[Mapping[str, Any]] = ()
) -> list[VerifiedLineage]:
    """The same for a step, which ends with its verdict, and with exit code 76 if there are only doubts.

    With `of`, verifies the lineages of these training tasks: see `places_of`.
    """
    if of:
        places = verdict(places_of, of, request.checkpoints, sys.argv, os.environ)
        return verdict(verify_places, request, endpoint, region, places)
    return verdict(verify, request, endpoint, region)


def verify_places(
    request: VerifyRequest, endpoint: str, region: str, places: Sequence[TrainedPlace]
) -> list[VerifiedLineage]:
    """Verify the lineage of each training task, with the options of `request`. Raises as `verify`."""
    verified: list[VerifiedLineage] = []
    errors: list[Unsafe] = []
    for place in places:
        first, *others = place.lineages
        one = replace(request, checkpoints=place.checkpoints, lineages=(first,), otherwise=tuple(others))
        try:
            verified += verify(one, endpoint or place.endpoint, region or place.region)
        except Unsafe as error:
            errors.append(error)
    kind = Doubtful if all(isinstance(error, Doubtful) for error in errors) else Unsafe
    kind.raise_any(problem for error in errors for problem in error.problems)
    return verified


async def _verify(request: VerifyRequest, config: StoreConfig) -> list[VerifiedLineage]:
    Unsafe.raise_any(filter(None, map(lineage_problem, request.lineages)))
    store = open_store(parse_uri(request.checkpoints), config)
    try:
        return await Verification(store, request).run()
    finally:
        await store.close()


class Verification:
    """Verifies one destination."""

    def __init__(self, store: Store, request: VerifyRequest) -> None:
        self._store = store
        self._request = request
        self._content_verifier = ContentVerifier()
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def run(self) -> list[VerifiedLineage]:
        """See `verify`."""
        heads = await self._read_heads()
        problems: list[Problem] = [] if heads else [await self._no_lineage()]
        by_head = await asyncio.gather(*map(self._problems_of, heads))
        problems += (problem for found in by_head for problem in found)
        self._print(heads, by_head)
        doubts = [head.doubt for head in heads if head.doubt is not None]
        if self._request.allow_doubtful:
            for doubt in doubts:
                print_line(f"allowed: {doubt}")
        else:
            (Unsafe if problems else Doubtful).raise_any([*problems, *doubts])
        Unsafe.raise_any(problems)
        return [
            VerifiedLineage(head.lineage, str(head.store.uri_of(head.commit.checkpoint)), head.commit)
            for head in heads
            if head.commit is not None
        ]

    async def _read_heads(self) -> list[LineageHead]:
        """The heads of the selected lineages, sorted by name."""
        names = self._request.lineages or await self._lineages()
        heads = await asyncio.gather(*map(self._read_head, sorted(set(names))))
        if self._request.otherwise and all(head.is_empty for head in heads):
            others = await asyncio.gather(*map(self._read_head, self._request.otherwise))
            heads = [head for head in others if not head.is_empty] or heads
        if not self._request.this_run_only:
            return heads
        return [head for head in heads if head.belongs_to(self._request.runs)]

    async def _lineages(self) -> list[str]:
        """All lineages, including those without a commit: a run that committed nothing must not pass."""
        names = (name[:-1] for name in await self._store.children() if name.endswith("/"))
        return [name for name in names if lineage_problem(name) is None]

    async def _read_head(self, lineage: str) -> LineageHead:
        async with self._slots:
            return await read_head(LineageStore(self._store, lineage))

    async def _problems_of(self, head: LineageHead) -> list[Problem]:
        if head.problem is not None:
            return [head.problem]
        commit, request = head.commit, self._request
        if commit is None:
            return [await self._nothing_committed(head)]
        if request.this_run_only and commit.run not in request.runs:
            measured = f"{commit.name} of run {commit.run or 'none'}, {commit.created:%Y-%m-%d %H:%M:%S %Z}"
            remedy = f"This run uploaded nothing. If nothing was left to train: {REMEDY}"
            return [Problem(f"{head.lineage}: its newest checkpoint is another run's", measured, remedy)]
        return [
            Problem(
                f"{head.store.path(commit.checkpoint)}: {problem.what}",
                problem.measured,
                problem.remedy or "Restore the object, or continue training from an earlier checkpoint",
            )
            for problem in await self._data_problems(head.store, commit)
        ]

    async def _nothing_committed(self, head: LineageHead) -> Problem:
        remedy = "Look at the training's log"
        if self._request.otherwise:
            remedy += "; if its code names another lineage, give lineages="
        if self._request.lineages:
            remedy += f". {await lineage_remedy(self._store, head.lineage)}"
        return Problem(f"{head.lineage} has no committed checkpoint", str(head.store.uri), remedy)

    async def _data_problems(self, store: LineageStore, commit: Commit) -> list[Problem]:
        async with self._slots:
            problems = await CommitReader(store).missing_objects(commit)
            if problems or not self._request.full:
                return problems
            checks = (self._content_verifier.find_damage(store, file) for file in commit.files)
            return [problem for problem in await asyncio.gather(*checks) if problem is not None]

    async def _no_lineage(self) -> Problem:
        """Why there is nothing to verify."""
        runs = ", ".join(self._request.runs) or "none is given: use podferry.components.verify_checkpoint"
        held = count_of(len(await self._lineages()), "lineage")
        measured = f"{self._store.uri} holds {held}; the run: {runs}"
        what = "no lineage at the destination" if self._request.any_run else "this run trained no lineage"
        remedy = f"Check the destination; if the training came from KFP's cache: {REMEDY}"
        return Problem(what, measured, remedy)

    def _print(self, heads: Iterable[LineageHead], by_head: Iterable[list[Problem]]) -> None:
        columns = ("lineage", "newest checkpoint", "step", "commit", "files", "size", "verdict")
        rows = [_row(head, len(problems)) for head, problems in zip(heads, by_head, strict=True)]
        checks = "names, sizes and checksums" if self._request.full else "names and sizes"
        print_table(f"{self._store.uri}: {checks}", columns, rows)


def _row(head: LineageHead, problems: int) -> tuple[str, ...]:
    verdict = count_of(problems, "problem") if problems else "complete" if head.doubt is None else "doubtful"
    commit = head.commit
    if commit is None:
        return (head.lineage, "", "", "", "", "", verdict)
    step = "" if commit.step is None else str(commit.step)
    size = format_bytes(commit.bytes)
    return (head.lineage, commit.name, step, str(commit.sequence), str(len(commit.files)), size, verdict)
