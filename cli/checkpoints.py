"""`podferry checkpoints …`: look at the checkpoints of a destination, check them, bring one back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cli import printing
from podferry.cli.common import access_options, config_of, output_option, place, run
from podferry.cli.lineages import History, Selection, find, history, selected, single
from podferry.cli.verify import Verdict, verify_lineages
from podferry.contract.commit import Commit
from podferry.contract.errors import InvalidWish, Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.logs import configure_logs
from podferry.sidecar.restore import Source, restore, restored_status
from podferry.storage.store import StoreConfig

ASIDE = ".podferry-restoring"
"""Directory below the target in which files grow until they are verified; removed at the end."""


@click.group()
def command() -> None:
    """Look at the checkpoints of a destination, check them, bring one back.

    URI is a destination as the annotation podferry.io/checkpoints has it, or a path; LINEAGE lies directly
    below it, and URI/LINEAGE means the same. CHECKPOINT is its name, its folder's, or that of a file.
    """
    # A damaged commit that is passed over is told as a warning.
    configure_logs("warning")


@command.command("ls")
@click.argument("uri")
@click.argument("lineage", required=False)
@output_option
@access_options
def ls(uri: str, lineage: str | None, output: str, **access: Any) -> int:
    """Print all lineages and their newest commits, or the commits of one."""
    words = [lineage] if lineage else []
    chosen, found = run(_histories(place(uri), words, config_of(**access)))
    one = len(chosen.lineages) == 1 and (bool(words) or str(chosen.catalogue.store.uri) != str(place(uri)))
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
    commit, where = run(_shown(place(uri), _at_most(words), config_of(**access)))
    if output == "json":
        printing.show_json(commit)
        return 0
    printing.show_pairs(_described(commit, where))
    click.echo()
    rows = [(format_bytes(file.size), f"{file.size:,}", file.sha256, file.name) for file in commit.files]
    printing.show_table(("size", "bytes", "sha256", "name"), rows, right=("size", "bytes"))
    moved = [file for file in commit.files if not file.object.startswith(f"{commit.checkpoint}/")]
    for file in moved:
        printing.say(f"{file.name} lies at {where / commit.lineage / file.object}")
    return 0


@command.command("verify")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.option("--deep", is_flag=True, help="Read all bytes and check their SHA-256; else sizes alone.")
@output_option
@access_options
def verify(uri: str, lineage: str | None, deep: bool, output: str, **access: Any) -> int:
    """Check that all that the commits list is there.

    The exit code is 1 where the newest commit of a lineage is not whole. Damaged older ones are told.
    """
    verdicts = run(_verified(place(uri), [lineage] if lineage else [], config_of(**access), deep=deep))
    if output == "json":
        printing.show_json([_verdict_json(verdict) for verdict in verdicts])
    else:
        rows = [_verdict_row(verdict) for verdict in verdicts]
        heads = ("lineage", "sequence", "step", "size", "state", "checkpoint")
        printing.show_table(heads, rows, right=("sequence", "step", "size"))
    printing.complain([problem for verdict in verdicts for problem in verdict.problems])
    return 1 if any(verdict.newest and verdict.problems for verdict in verdicts) else 0


@command.command("restore")
@click.argument("uri")
@click.argument("words", nargs=-1, metavar="[LINEAGE] [CHECKPOINT]")
@click.option(
    "--to", "target", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where."
)
@output_option
@access_options
def restore_(uri: str, words: tuple[str, ...], target: Path, output: str, **access: Any) -> int:
    """Bring a checkpoint, the newest unless one is named, to a directory; every byte is verified.

    Files that are there already stay where they are the same; where they differ nothing is changed. A
    checkpoint that is damaged is passed over for the one before it, and that is told.
    """
    commit, seconds = run(_restored(place(uri), _at_most(words), target.absolute(), config_of(**access)))
    restored = restored_status(commit, seconds)
    if output == "json":
        printing.show_json(restored)
        return 0
    click.echo(str(target / restored.path))
    step = "" if commit.step is None else f", step {commit.step:,}"
    speed = f"{format_bytes(commit.bytes)} in {seconds:.1f} s"
    printing.say(f"restored: {commit.name}{step}, {speed}")
    return 0


async def _histories(uri: Uri, words: list[str], config: StoreConfig) -> tuple[Selection, list[History]]:
    async with selected(uri, words, config) as chosen:
        single_one = len(chosen.lineages) == 1
        limit = None if single_one else 1
        return chosen, [await history(chosen.catalogue, lineage, limit) for lineage in chosen.lineages]


async def _shown(uri: Uri, words: tuple[str, ...], config: StoreConfig) -> tuple[Commit, Uri]:
    async with selected(uri, words, config) as chosen:
        wanted = _only(chosen)
        known = await history(chosen.catalogue, single(chosen), None if wanted else 1)
        return find(known, wanted), chosen.catalogue.store.uri


async def _verified(uri: Uri, words: list[str], config: StoreConfig, *, deep: bool) -> list[Verdict]:
    async with selected(uri, words, config) as chosen:
        _nothing_left(chosen)
        return await verify_lineages(chosen.catalogue, chosen.lineages, deep=deep)


async def _restored(
    uri: Uri, words: tuple[str, ...], target: Path, config: StoreConfig
) -> tuple[Commit, float]:
    async with selected(uri, words, config) as chosen:
        wanted, lineage = _only(chosen), single(chosen)
        # A name means its newest version, as `show` has it: nothing else is brought in its place.
        name = find(await history(chosen.catalogue, lineage), wanted).checkpoint if wanted else None
        source = Source(chosen.catalogue, lineage, name)
        existed = target.exists()
        target.mkdir(parents=True, exist_ok=True)
        try:
            found = await restore(source, target, target / ASIDE)
        except Refused as error:
            raise Refused(*(_for_people(problem) for problem in error.problems)) from error
        finally:
            shutil.rmtree(target / ASIDE, ignore_errors=True)
            if not existed and not any(target.iterdir()):
                target.rmdir()
        assert found is not None  # noqa: S101 - a checkpoint is required, so that its absence has raised
        return found


def _for_people(problem: Any) -> Any:
    """Here nobody resumes: another directory will do."""
    return msgspec.structs.replace(problem, remedy="Move it away, or restore to another directory")


def _at_most(words: tuple[str, ...]) -> tuple[str, ...]:
    if len(words) > 2:
        raise click.UsageError(f"unexpected: {' '.join(words[2:])}")
    return words


def _only(chosen: Selection) -> str | None:
    """The one word that no lineage took."""
    if len(chosen.rest) > 1:
        where = f"{chosen.catalogue.store.uri / chosen.lineages[0]} is a lineage itself"
        raise InvalidWish.of("one checkpoint at a time", f"{' '.join(chosen.rest)}; {where}", "Name one")
    return chosen.rest[0] if chosen.rest else None


def _nothing_left(chosen: Selection) -> None:
    if chosen.rest:
        where = f"{chosen.catalogue.store.uri / chosen.lineages[0]} is a lineage itself"
        raise InvalidWish.of(f"{chosen.rest[0]!r} is no lineage", where, "Leave it out")


def _files(commit: Commit) -> str:
    return "1 file" if len(commit.files) == 1 else f"{len(commit.files):,} files"


def _step(commit: Commit | None) -> str:
    return "-" if commit is None or commit.step is None else f"{commit.step:,}"


def _commit_row(commit: Commit) -> tuple[str, ...]:
    size, files = format_bytes(commit.bytes), f"{len(commit.files):,}"
    age = printing.age(commit.created)
    return f"{commit.sequence}", _step(commit), size, files, age, commit.name, commit.checkpoint


def _lineage_row(known: History) -> tuple[str, ...]:
    newest, count = known.newest, f"{len(known.sequences):,}"
    if newest is None:
        return known.lineage, count, "-", "-", "-", "not readable"
    size = format_bytes(newest.bytes)
    return known.lineage, count, _step(newest), size, printing.age(newest.created), newest.name


def _verdict_row(verdict: Verdict) -> tuple[str, ...]:
    commit = verdict.commit
    size, name = (format_bytes(commit.bytes), commit.checkpoint) if commit else ("-", "-")
    return verdict.lineage, f"{verdict.sequence}", _step(commit), size, verdict.state, name


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
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


def _as_json(known: History, *, whole: bool) -> dict[str, Any]:
    commits = {"commits": known.commits} if whole else {"commits": len(known.sequences)}
    problems = [str(problem) for problem in known.flat]
    return {"lineage": known.lineage, "newest": known.newest, **commits, "problems": problems}


def _described(commit: Commit, where: Uri) -> list[tuple[str, str]]:
    return [
        ("checkpoint", str(where / commit.lineage / commit.checkpoint)),
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
