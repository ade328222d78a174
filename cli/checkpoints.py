"""`podferry checkpoints …`: look at the checkpoints of a destination, check them, bring one back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from podferry.cli import gc, restore
from podferry.cli import output as printing
from podferry.cli.lineage_args import (
    LineageHistory,
    SelectedLineages,
    at_most,
    find,
    history,
    only,
    ranked,
    selected,
    single,
)
from podferry.cli.options import access_options, config_of, output_option, place, run
from podferry.cli.verify import CommitVerdict, verify_lineages
from podferry.contract.commit import Commit
from podferry.contract.errors import InvalidSpec
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.runtime.log_setup import configure_logs
from podferry.storage.store import StoreConfig


@click.group()
def command() -> None:
    """Look at the checkpoints of a destination, check them, bring one back.

    URI is a destination as the annotation podferry.io/checkpoints has it, or a path; LINEAGE lies directly
    below it, and URI/LINEAGE means the same. CHECKPOINT is its name, its folder's, or that of a file.
    """
    # A damaged commit that is passed over is told as a warning.
    configure_logs("warning")


command.add_command(gc.command)
command.add_command(restore.command)


@command.command("ls")
@click.argument("uri")
@click.argument("lineage", required=False)
@output_option
@access_options
def ls(uri: str, lineage: str | None, output: str, **access: Any) -> int:
    """Print all lineages and their newest commits, or the commits of one."""
    words = [lineage] if lineage else []
    chosen, found = run(_histories(place(uri), words, config_of(**access)))
    one = len(chosen.lineages) == 1 and (bool(words) or str(chosen.destination.uri) != str(place(uri)))
    if output == "json":
        printing.show_json([_as_json(known, whole=one) for known in found])
    elif one:
        columns = ("sequence", "step", "size", "files", "age", "name", "checkpoint")
        commits = [_commit_row(commit) for commit in found[0].commits]
        printing.show_table(columns, commits, right=("sequence", "step", "size", "files", "age"))
    else:
        heads = ("lineage", "commits", "step", "size", "age", "newest")
        lineages = [_lineage_row(known) for known in found]
        printing.show_table(heads, lineages, right=("commits", "step", "size", "age"))
    printing.complain([problem for known in found for problem in known.flat])
    return 0 if all(known.newest for known in found) else 1


@command.command("show")
@click.argument("uri")
@click.argument("words", nargs=-1, metavar="[LINEAGE] [CHECKPOINT]")
@output_option
@access_options
def show(uri: str, words: tuple[str, ...], output: str, **access: Any) -> int:
    """Print the files of a checkpoint, the newest unless one is named, and who wrote it."""
    commit, where = run(_shown(place(uri), at_most(words), config_of(**access)))
    if output == "json":
        printing.show_json(commit)
        return 0
    printing.show_pairs(_described(commit, where))
    click.echo()
    heads = ("size", "bytes", "xxh128", *(("rank",) if ranked(commit) else ()), "name")
    printing.show_table(heads, list(_file_rows(commit)), right=("size", "bytes", "rank"))
    moved = [file for file in commit.files if not file.object.startswith(f"{commit.checkpoint}/")]
    for file in moved:
        printing.say(f"{file.name} lies at {where.uri_of(file.object)}")
    return 0


@command.command("verify")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.option("--deep", is_flag=True, help="Read all bytes and check their XXH3-128; else sizes alone.")
@output_option
@access_options
def verify(uri: str, lineage: str | None, deep: bool, output: str, **access: Any) -> int:
    """Check that all that the commits list is there.

    The exit code is 1 where the newest commit of a lineage is not whole. Damaged older ones are told.
    """
    words = [lineage] if lineage else []
    verdicts = run(_verified(place(uri), words, config_of(**access), deep=deep))
    if output == "json":
        printing.show_json([_verdict_json(verdict) for verdict in verdicts])
    else:
        rows = [_verdict_row(verdict) for verdict in verdicts]
        heads = ("lineage", "sequence", "step", "size", "state", "checkpoint")
        printing.show_table(heads, rows, right=("sequence", "step", "size"))
    printing.complain([problem for verdict in verdicts for problem in verdict.problems])
    return 1 if any(verdict.newest and verdict.problems for verdict in verdicts) else 0


async def _histories(
    uri: Uri, words: list[str], config: StoreConfig
) -> tuple[SelectedLineages, list[LineageHistory]]:
    async with selected(uri, words, config) as chosen:
        single_one = len(chosen.lineages) == 1
        limit = None if single_one else 1
        return chosen, [await history(reader, limit) for reader in chosen.readers]


async def _shown(uri: Uri, words: tuple[str, ...], config: StoreConfig) -> tuple[Commit, LineageStore]:
    async with selected(uri, words, config) as chosen:
        wanted, reader = only(chosen), single(chosen)
        known = await history(reader, None if wanted else 1)
        return find(known, wanted), reader.store


async def _verified(uri: Uri, words: list[str], config: StoreConfig, *, deep: bool) -> list[CommitVerdict]:
    async with selected(uri, words, config) as chosen:
        _nothing_left(chosen)
        with progress_bar("verifying") as told:
            return await verify_lineages(chosen.readers, deep=deep, told=told)


def _nothing_left(chosen: SelectedLineages) -> None:
    if chosen.rest:
        where = f"{chosen.readers[0].store.uri} is a lineage itself"
        raise InvalidSpec.of(f"{chosen.rest[0]!r} is no lineage", where, "Leave it out")


def _files(commit: Commit) -> str:
    return "1 file" if len(commit.files) == 1 else f"{len(commit.files):,} files"


def _file_rows(commit: Commit) -> Iterator[tuple[str, ...]]:
    for file in commit.files:
        rank = ("-" if file.rank is None else f"{file.rank}",) if ranked(commit) else ()
        yield format_bytes(file.size), f"{file.size:,}", file.xxh128, *rank, file.name


def _step(commit: Commit | None) -> str:
    return "-" if commit is None or commit.step is None else f"{commit.step:,}"


def _commit_row(commit: Commit) -> tuple[str, ...]:
    size, files = format_bytes(commit.bytes), f"{len(commit.files):,}"
    age = printing.age(commit.created)
    return f"{commit.sequence}", _step(commit), size, files, age, commit.name, commit.checkpoint


def _lineage_row(known: LineageHistory) -> tuple[str, ...]:
    newest, count = known.newest, f"{len(known.sequences):,}"
    if newest is None:
        return known.lineage, count, "-", "-", "-", "not readable"
    size = format_bytes(newest.bytes)
    return known.lineage, count, _step(newest), size, printing.age(newest.created), newest.name


def _verdict_row(verdict: CommitVerdict) -> tuple[str, ...]:
    commit = verdict.commit
    size, name = (format_bytes(commit.bytes), commit.checkpoint) if commit else ("-", "-")
    return verdict.lineage, f"{verdict.sequence}", _step(commit), size, verdict.state, name


def _verdict_json(verdict: CommitVerdict) -> dict[str, Any]:
    return {
        "lineage": verdict.lineage,
        "sequence": verdict.sequence,
        "checkpoint": verdict.commit and verdict.commit.checkpoint,
        "step": verdict.commit and verdict.commit.step,
        "bytes": verdict.commit and verdict.commit.bytes,
        "state": verdict.state,
        "newest": verdict.newest,
        "problems": [str(problem) for problem in verdict.problems],
    }


def _as_json(known: LineageHistory, *, whole: bool) -> dict[str, Any]:
    commits = {"commits": known.commits} if whole else {"commits": len(known.sequences)}
    problems = [str(problem) for problem in known.flat]
    return {"lineage": known.lineage, "newest": known.newest, **commits, "problems": problems}


def _described(commit: Commit, where: LineageStore) -> list[tuple[str, str]]:
    return [
        ("checkpoint", str(where.uri_of(commit.checkpoint))),
        ("name", commit.name),
        ("lineage", commit.lineage),
        ("sequence", str(commit.sequence)),
        ("step", _step(commit)),
        ("size", f"{commit.bytes:,} ({format_bytes(commit.bytes)}) in {_files(commit)}"),
        ("created", commit.created.isoformat(timespec="seconds")),
        ("world", str(commit.world)),
        ("run", commit.run or "-"),
        ("writer", commit.writer),
    ]
