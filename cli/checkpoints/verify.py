"""`podferry checkpoints verify`: checks that everything the commits list exists, and names doubtful ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from podferry.cli.checkpoints.confidence import YELLOW, confidence_of, doubt_problem
from podferry.cli.checkpoints.lineage_args import LineageHistory, format_step, read_histories, select_lineages
from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import output_option, print_json, print_table
from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.exit_codes import EXIT_DOUBTFUL
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.content_verifier import ContentVerifier
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.runtime.messages import print_problems
from podferry.storage.store import StoreConfig

CONCURRENCY = 16
"""Commits verified in parallel: few enough for any store, as each checks many objects."""

ContentKey = tuple[str, str, str, int]
"""Lineage, object, checksum, size. Later commits may list files of earlier ones; each is read once."""


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """The result for one commit.

    Attributes:
        lineage: Its lineage.
        sequence: Its number.
        newest: Whether it is the newest commit that `restore` takes: of the main kind of its lineage.
        commit: The commit, or None if it is not readable.
        problems: What is missing or damaged; empty for an intact commit.
    """

    lineage: str
    sequence: int
    newest: bool
    commit: Commit | None
    problems: tuple[Problem, ...]

    @property
    def state(self) -> str:
        """One or two words: `intact`, `damaged`, `not readable`."""
        if self.commit is None:
            return "not readable"
        return "damaged" if self.problems else "intact"

    @property
    def contents(self) -> dict[ContentKey, CommittedFile]:
        """The files whose bytes are worth reading: those of a commit without problems so far."""
        if self.commit is None or self.problems:
            return {}
        return {(self.lineage, file.object, file.xxh128, file.size): file for file in self.commit.files}

    def with_problems(self, problems: Iterable[Problem]) -> CommitVerdict:
        """The same verdict with more problems."""
        added = (_name_commit(problem, self.lineage, self.sequence) for problem in problems)
        return replace(self, problems=(*self.problems, *added))


@click.command("verify")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.option("--deep", is_flag=True, help="Also read all bytes and compare their XXH3-128.")
@output_option
@access_options
def command(uri: str, lineage: str | None, deep: bool, output: str, **access: Any) -> int:
    """Verify that all committed files exist.

    Checks that every file listed in the commits exists and has the right size. Reports all damaged commits.
    The exit code is 1 if the newest commit of a lineage is damaged; otherwise 76 if it is doubtful: all of
    its files are there, and nothing proves that they are the entire checkpoint.
    """
    destination, verdicts = asyncio.run(
        _verify_selected(parse_location(uri), lineage, store_config_of(**access), deep=deep)
    )
    if output == "json":
        print_json([_verdict_json(verdict) for verdict in verdicts])
    else:
        headers = ("lineage", "sequence", "step", "size", "state", "confidence", "checkpoint")
        rows = [_verdict_row(verdict) for verdict in verdicts]
        print_table(headers, rows, right=("sequence", "step", "size"), yellow=YELLOW)
    print_problems([problem for verdict in verdicts for problem in verdict.problems])
    doubtful = [verdict.commit for verdict in verdicts if verdict.newest and verdict.commit is not None]
    doubts = [doubt_problem(commit, destination) for commit in doubtful if not commit.is_sure]
    print_problems(doubts, "yellow")
    if any(verdict.newest and verdict.problems for verdict in verdicts):
        return 1
    return EXIT_DOUBTFUL if doubts else 0


async def _verify_selected(
    uri: Uri, lineage: str | None, config: StoreConfig, *, deep: bool
) -> tuple[Uri, list[CommitVerdict]]:
    async with select_lineages(uri, [lineage or None], config) as selected:
        if selected.remaining:
            measured = f"{selected.readers[0].store.uri} is a lineage itself"
            raise InvalidSpec.of(f"{selected.remaining[0]!r} is not a lineage", measured, "Leave it out")
        with progress_bar("verifying") as on_progress:
            verdicts = await _verify_lineages(selected.readers, deep=deep, on_progress=on_progress)
            return selected.destination.uri, verdicts


async def _verify_lineages(
    readers: Sequence[CommitReader], *, deep: bool, on_progress: Callable[[int, int], None]
) -> list[CommitVerdict]:
    """Verify every commit of the lineages, newest first; `deep` also reads all bytes, each once, in parallel.

    `on_progress` gets (bytes read, bytes in total). Raises `AccessDenied` or `TemporaryError`.
    """
    slots = asyncio.Semaphore(CONCURRENCY)

    async def check_objects(verdict: CommitVerdict) -> CommitVerdict:
        if verdict.commit is None:
            return verdict
        async with slots:
            return verdict.with_problems(await by_lineage[verdict.lineage].missing_objects(verdict.commit))

    by_lineage = {reader.store.lineage: reader for reader in readers}
    readable = [verdict for history in await read_histories(readers) for verdict in _read_verdicts(history)]
    verdicts = await asyncio.gather(*map(check_objects, readable))
    found = await _check_contents(by_lineage, verdicts, on_progress) if deep else verdicts
    return await _still_listed(by_lineage, found)


async def _still_listed(
    by_lineage: Mapping[str, CommitReader], verdicts: Sequence[CommitVerdict]
) -> list[CommitVerdict]:
    """The verdicts without damaged commits that are gone: an agent has removed them and their files."""
    damaged = {verdict.lineage for verdict in verdicts if verdict.problems}
    listed = {lineage: await by_lineage[lineage].sequences() for lineage in damaged}
    return [
        verdict for verdict in verdicts if not verdict.problems or verdict.sequence in listed[verdict.lineage]
    ]


def _read_verdicts(history: LineageHistory) -> Iterator[CommitVerdict]:
    """The commits of a lineage, newest first, each with the problems met reading it."""
    commits = {commit.sequence: commit for commit in history.commits}
    newest = history.newest.sequence if history.newest is not None else history.sequences[-1]
    for number in reversed(history.sequences):
        verdict = CommitVerdict(history.lineage, number, number == newest, commits.get(number), ())
        yield verdict.with_problems(history.problems.get(number, ()))


async def _check_contents(
    readers: Mapping[str, CommitReader],
    verdicts: list[CommitVerdict],
    on_progress: Callable[[int, int], None],
) -> list[CommitVerdict]:
    """Read the files of the commits without problems so far, and add what is wrong with their bytes."""
    files = {key: file for verdict in verdicts for key, file in verdict.contents.items()}
    total, done = sum(file.size for file in files.values()), 0

    def add_bytes(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, total)

    verifier = ContentVerifier(add_bytes)
    found = await asyncio.gather(
        *(verifier.find_damage(readers[key[0]].store, file) for key, file in files.items())
    )
    problems = dict(zip(files, found, strict=True))
    return [
        verdict.with_problems(filter(None, (problems[key] for key in verdict.contents)))
        for verdict in verdicts
    ]


def _name_commit(problem: Problem, lineage: str, sequence: int) -> Problem:
    return Problem(f"{lineage}, commit {sequence}: {problem.what}", problem.measured, problem.remedy)


def _verdict_row(verdict: CommitVerdict) -> tuple[str, ...]:
    commit = verdict.commit
    size, name = (format_bytes(commit.bytes), commit.checkpoint) if commit else ("-", "-")
    state, confidence = verdict.state, confidence_of(commit)
    return verdict.lineage, f"{verdict.sequence}", format_step(commit), size, state, confidence, name


def _verdict_json(verdict: CommitVerdict) -> dict[str, Any]:
    return {
        "lineage": verdict.lineage,
        "sequence": verdict.sequence,
        "checkpoint": verdict.commit and verdict.commit.checkpoint,
        "step": verdict.commit and verdict.commit.step,
        "bytes": verdict.commit and verdict.commit.bytes,
        "state": verdict.state,
        "confidence": verdict.commit and verdict.commit.confidence,
        "doubts": verdict.commit.doubts if verdict.commit else (),
        "newest": verdict.newest,
        "problems": [str(problem) for problem in verdict.problems],
    }
