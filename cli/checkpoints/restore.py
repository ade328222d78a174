"""`podferry checkpoints restore`: download a checkpoint."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli.checkpoints.lineage_args import has_rank_files, restore_source, select_lineages
from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import output_option, print_json
from podferry.contract.errors import Problem, Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.restore.choice import describe_passed_over
from podferry.sidecar.checkpoint.restore.restore import RestoreOutcome, restore, restored_status
from podferry.sidecar.checkpoint.restore.verified_staging import FILES_DIR
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.runtime.messages import print_message
from podferry.storage.store import StoreConfig

STAGING_DIR = ".podferry-restoring"
"""Directory below the target that holds files until they are verified; removed at the end."""


@click.command("restore")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.argument("checkpoint", required=False)
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Target directory, created if missing.",
)
@click.option("--rank", type=click.IntRange(min=0), help="Prefer this rank's files.  [default: the lowest]")
@output_option
@access_options
def command(
    uri: str,
    lineage: str | None,
    checkpoint: str | None,
    target: Path,
    rank: int | None,
    output: str,
    **access: Any,
) -> int:
    """Download a checkpoint and verify every byte.

    Without CHECKPOINT, restores the newest that is sure and intact, and names those it passed over; `latest`
    takes a doubtful one as well. Existing files with the same content are kept; if one differs, nothing is
    changed. If the store stops responding, run the same command again to resume.
    """
    words = (lineage, checkpoint)
    work = _restore(parse_location(uri), words, target.absolute(), rank, store_config_of(**access))
    outcome = asyncio.run(work)
    _print(outcome, target, output, lowest_rank=rank is None)
    return 0


def _print(outcome: RestoreOutcome, target: Path, output: str, *, lowest_rank: bool) -> None:
    commit, seconds = outcome.commit, outcome.seconds
    assert commit is not None  # noqa: S101 - a required checkpoint that is missing has raised
    restored = restored_status(commit, seconds)
    if output == "json":
        print_json({**msgspec.to_builtins(restored), "passed_over": outcome.passed_over})
        return
    if outcome.passed_over:
        passed_over = describe_passed_over(outcome.passed_over, outcome.passed_over_count)
        print_message(f"passed over: {passed_over}", "yellow")
    click.echo(str(target / restored.path))
    step = "" if commit.step is None else f", step {commit.step:,}"
    print_message(f"restored: {commit.name}{step}, {format_bytes(commit.bytes)} in {seconds:.1f} s")
    if lowest_rank and has_rank_files(commit):
        print_message("files that differ between ranks are the lowest rank's: see `show`, and --rank")


async def _restore(
    uri: Uri, words: Sequence[str | None], target: Path, rank: int | None, config: StoreConfig
) -> RestoreOutcome:
    async with select_lineages(uri, words, config) as selected:
        source = await restore_source(selected)
        with _prepared_target(target), progress_bar("restoring") as on_progress:
            return await restore(source, target, target / STAGING_DIR, rank, on_progress)


@contextmanager
def _prepared_target(target: Path) -> Iterator[None]:
    """Create the target; after a failure, keep only what the same command can resume from."""
    existed = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    staging = target / STAGING_DIR
    try:
        yield
    except Refused as error:
        raise Refused(*map(_for_command_line, error.problems)) from error
    finally:
        if any(path.is_file() for path in (staging / FILES_DIR).rglob("*")):
            print_message(f"complete files are kept in {staging}: run the same command again to resume")
        else:
            shutil.rmtree(staging, ignore_errors=True)
        if not existed and not any(target.iterdir()):
            target.rmdir()


def _for_command_line(problem: Problem) -> Problem:
    """The problem with the remedy for a person, who can choose another directory."""
    return msgspec.structs.replace(problem, remedy="Move it away, or restore to another directory")
