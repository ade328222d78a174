"""`podferry checkpoints restore`: bring one back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli import output as printing
from podferry.cli.lineage_args import at_most, find, history, only, ranked, selected, single
from podferry.cli.options import access_options, config_of, output_option, place, run
from podferry.contract.commit import Commit
from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.restore.restore import RestoreSource, restore, restored_status
from podferry.sidecar.checkpoint.restore.verified_staging import FILES
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.storage.store import StoreConfig

ASIDE = ".podferry-restoring"
"""Directory below the target in which files grow until they are verified; removed at the end."""


@click.command("restore")
@click.argument("uri")
@click.argument("words", nargs=-1, metavar="[LINEAGE] [CHECKPOINT]")
@click.option(
    "--to", "target", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where."
)
@click.option(
    "--rank",
    type=click.IntRange(min=0),
    help="Whose files, where ranks wrote different ones of a name.  [default: the lowest]",
)
@output_option
@access_options
def command(
    uri: str, words: tuple[str, ...], target: Path, rank: int | None, output: str, **access: Any
) -> int:
    """Bring a checkpoint, the newest unless one is named, to a directory; every byte is verified.

    Files that are there already stay where they are the same; where they differ nothing is changed. A
    checkpoint that is damaged is passed over for the one before it, and that is told. Where the store stops
    answering, the same command goes on from what is whole.
    """
    work = _restored(place(uri), at_most(words), target.absolute(), rank, config_of(**access))
    commit, seconds = run(work)
    restored = restored_status(commit, seconds)
    if output == "json":
        printing.show_json(restored)
        return 0
    click.echo(str(target / restored.path))
    step = "" if commit.step is None else f", step {commit.step:,}"
    speed = f"{format_bytes(commit.bytes)} in {seconds:.1f} s"
    printing.say(f"restored: {commit.name}{step}, {speed}")
    if rank is None and ranked(commit):
        printing.say("of the files that differ by rank these are the lowest rank's: see `show`, and --rank")
    return 0


async def _restored(
    uri: Uri, words: tuple[str, ...], target: Path, rank: int | None, config: StoreConfig
) -> tuple[Commit, float]:
    async with selected(uri, words, config) as chosen:
        wanted, reader = only(chosen), single(chosen)
        # A name means its newest version, as `show` has it: nothing else is brought in its place.
        name = find(await history(reader), wanted).checkpoint if wanted else None
        source = RestoreSource(reader, name)
        with _kept(target), progress_bar("restoring") as told:
            found = await restore(source, target, target / ASIDE, rank, told)
        assert found is not None  # noqa: S101 - a checkpoint is required, so that its absence has raised
        return found


@contextmanager
def _kept(target: Path) -> Iterator[None]:
    """Make the target; after a failure, leave what the same command can go on from, and nothing else."""
    existed = target.exists()
    target.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except Refused as error:
        raise Refused(*(_for_people(problem) for problem in error.problems)) from error
    finally:
        if any(path.is_file() for path in (target / ASIDE / FILES).rglob("*")):
            printing.say(
                f"files that are whole wait in {target / ASIDE}: the same command goes on from there"
            )
        else:
            shutil.rmtree(target / ASIDE, ignore_errors=True)
        if not existed and not any(target.iterdir()):
            target.rmdir()


def _for_people(problem: Any) -> Any:
    """Here nobody resumes: another directory will do."""
    return msgspec.structs.replace(problem, remedy="Move it away, or restore to another directory")
