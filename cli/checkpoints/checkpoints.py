"""`podferry checkpoints …`: list, inspect, verify, confirm, restore, export and remove them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from podferry.cli.checkpoints import confirm, export, gc, restore, verify
from podferry.cli.checkpoints.confidence import YELLOW, confidence_lines, confidence_of, read_confirmations
from podferry.cli.checkpoints.folder import describe_folder
from podferry.cli.checkpoints.lineage_args import (
    LineageHistory,
    SelectedLineages,
    format_step,
    has_rank_files,
    read_histories,
    read_history,
    select_lineages,
)
from podferry.cli.checkpoints.provenance_rows import provenance_cells, provenance_columns, provenance_lines
from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import format_age, output_option, print_json, print_pairs, print_table
from podferry.contract.destination.commit import Commit
from podferry.contract.destination.confidence import Confirmation
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.runtime.log_setup import configure_unless_done
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.storage.store import StoreConfig

COMMIT_COLUMNS = ("sequence", "step", "size", "files", "age", "confidence", "name", "checkpoint")
LINEAGE_COLUMNS = ("lineage", "commits", "step", "size", "age", "confidence", "newest")
NUMBERS = ("sequence", "commits", "step", "size", "files", "age")


@click.group()
def command() -> None:
    """List, inspect, verify, confirm, restore, export and remove checkpoints at a destination.

    URI is the destination: a path, or the value of the annotation podferry.io/checkpoints. LINEAGE is the
    name of a lineage there; URI/LINEAGE works too. CHECKPOINT is the name of a checkpoint, its folder, or one
    of its files.
    """
    # Skipped damaged commits are logged as warnings.
    configure_unless_done()


command.add_command(confirm.command)
command.add_command(export.command)
command.add_command(gc.command)
command.add_command(restore.command)
command.add_command(verify.command)


@command.command("ls")
@click.argument("uri")
@click.argument("lineage", required=False)
@output_option
@access_options
def ls(uri: str, lineage: str | None, output: str, **access: Any) -> int:
    """List lineages, or the commits of one lineage.

    Without LINEAGE, lists all lineages, each with its newest commit.
    """
    location = parse_location(uri)
    selected, histories = asyncio.run(_read_histories(location, lineage, store_config_of(**access)))
    is_lineage = bool(lineage) or str(selected.destination.uri) != str(location)
    one_lineage = len(histories) == 1 and is_lineage
    if output == "json":
        print_json([_history_json(history, with_commits=one_lineage) for history in histories])
    elif one_lineage:
        rows = [_commit_row(commit) for commit in histories[0].commits]
        print_table(COMMIT_COLUMNS, rows, right=NUMBERS, yellow=YELLOW)
    else:
        added = provenance_columns([history.newest for history in histories])
        rows = [
            (*_lineage_row(history), *(provenance_cells(history.newest) if added else ()))
            for history in histories
        ]
        print_table((*LINEAGE_COLUMNS, *added), rows, right=NUMBERS, yellow=YELLOW, optional=len(added))
    print_problems([problem for history in histories for problem in history.all_problems])
    return 0 if all(history.newest for history in histories) else 1


@command.command("show", short_help="Show the files of a checkpoint, and whether it is complete.")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.argument("checkpoint", required=False)
@output_option
@access_options
def show(uri: str, lineage: str | None, checkpoint: str | None, output: str, **access: Any) -> int:
    """Show a checkpoint's files, which agent wrote it, and whether it is proven complete.

    Without CHECKPOINT, shows the newest.
    """
    words = (lineage, checkpoint)
    commit, confirmations, store = asyncio.run(
        _read_commit(parse_location(uri), words, store_config_of(**access))
    )
    if output == "json":
        print_json({**msgspec.to_builtins(commit), "confirmations": confirmations})
        return 0
    print_pairs([*_describe(commit, store), *confidence_lines(commit, confirmations)])
    click.echo()
    headers = ("size", "bytes", "xxh128", *(("rank",) if has_rank_files(commit) else ()), "name")
    print_table(headers, list(_file_rows(commit)), right=("size", "bytes", "rank"))
    for line in describe_folder(commit, store.uri, access["endpoint"]):
        print_message(line)
    return 0


async def _read_histories(
    uri: Uri, lineage: str | None, config: StoreConfig
) -> tuple[SelectedLineages, list[LineageHistory]]:
    async with select_lineages(uri, [lineage or None], config) as selected:
        limit = None if len(selected.lineages) == 1 else 1
        return selected, await read_histories(selected.readers, limit)


async def _read_commit(
    uri: Uri, words: Sequence[str | None], config: StoreConfig
) -> tuple[Commit, list[Confirmation], LineageStore]:
    async with select_lineages(uri, words, config) as selected:
        wanted, reader = selected.checkpoint_argument(), selected.require_one()
        history = await read_history(reader, None if wanted else 1)
        commit = history.find(wanted)
        return commit, await read_confirmations(reader, commit), reader.store


def _file_rows(commit: Commit) -> Iterator[tuple[str, ...]]:
    for file in commit.files:
        rank = ("-" if file.rank is None else f"{file.rank}",) if has_rank_files(commit) else ()
        yield format_bytes(file.size), f"{file.size:,}", file.xxh128, *rank, file.name


def _commit_row(commit: Commit) -> tuple[str, ...]:
    numbers = f"{commit.sequence}", format_step(commit), format_bytes(commit.bytes), f"{len(commit.files):,}"
    return *numbers, format_age(commit.created), confidence_of(commit), commit.name, commit.checkpoint


def _lineage_row(history: LineageHistory) -> tuple[str, ...]:
    newest, count = history.newest, f"{len(history.sequences):,}"
    if newest is None:
        return history.lineage, count, "-", "-", "-", "-", "not readable"
    size, age = format_bytes(newest.bytes), format_age(newest.created)
    return history.lineage, count, format_step(newest), size, age, confidence_of(newest), newest.name


def _history_json(history: LineageHistory, *, with_commits: bool) -> dict[str, Any]:
    return {
        "lineage": history.lineage,
        "newest": history.newest,
        "commits": history.commits if with_commits else len(history.sequences),
        "problems": [str(problem) for problem in history.all_problems],
    }


def _describe(commit: Commit, store: LineageStore) -> list[tuple[str, str]]:
    files = count_of(len(commit.files), "file")
    return [
        ("checkpoint", str(store.uri_of(commit.checkpoint))),
        ("name", commit.name),
        ("lineage", commit.lineage),
        ("sequence", str(commit.sequence)),
        ("step", format_step(commit)),
        ("size", f"{commit.bytes:,} ({format_bytes(commit.bytes)}) in {files}"),
        ("created", commit.created.isoformat(timespec="seconds")),
        ("world", str(commit.world)),
        ("run", commit.run or "-"),
        ("writer", commit.agent_id),
        *provenance_lines(commit),
    ]
