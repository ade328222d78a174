"""`podferry leftovers …`: lists, uploads and removes what killed runs have left on this machine."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from podferry.cli.options.param_types import SECONDS
from podferry.cli.output import format_age, output_option, print_json, print_table
from podferry.contract.errors import FerryError, NotFound, PermanentError, Problem
from podferry.contract.exit_codes import EXIT_NOT_DURABLE
from podferry.contract.http_api import Durability
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.launch.durability_wait import LOOK_SECONDS
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.leftover_contents import Leftover
from podferry.sidecar.launch.leftovers import (
    Found,
    find_leftovers,
    remove,
    remove_empty_records,
    use_problem,
)
from podferry.sidecar.runtime.log_setup import configure_unless_done
from podferry.sidecar.runtime.messages import print_message, print_problems

HEADERS = ("id", "age", "size", "not durable", "destination", "command")
COMMAND_WIDTH = 60
"""Characters of a command in the table; the JSON document has all."""
ids = click.argument("ids", nargs=-1, metavar="[ID]...")
everything = click.option("--all", "everything", is_flag=True, help="All of them.")

LISTED = "`podferry leftovers ls` lists them"


@click.group()
def command() -> None:
    """List, upload and remove what runs that were killed have left on this machine.

    A run that is killed together with its agent leaves its directories in memory (/dev/shm). Those of runs
    that live are never touched. ID is the name in the list.
    """
    configure_unless_done()


@command.command("ls")
@output_option
def ls(output: str) -> int:
    """List what is left, with its size and what of it is not durable."""
    remove_empty_records()
    found = find_leftovers()
    if output == "json":
        print_json(found.leftovers)
    elif found.leftovers:
        print_table(HEADERS, [_row(one) for one in found.leftovers], right=HEADERS[1:3])
    else:
        print_message("nothing is left")
    _print_rest(found)
    return 0


@command.command("upload")
@ids
@everything
@click.option("--lineage", metavar="NAME", help="Upload it to this lineage.  [default: that of the run]")
@click.option("--durable-timeout", type=SECONDS, default=600.0, help="Seconds for each.")
@output_option
def upload(
    ids: tuple[str, ...], everything: bool, lineage: str | None, durable_timeout: float, output: str
) -> int:
    """Upload what is not durable to its destination, then remove it from this machine.

    The exit code is 74 if something is not durable afterwards.
    """
    from podferry.sidecar.launch.leftover_upload import upload as upload_one  # noqa: PLC0415 - imports engines

    selected = _select(ids, everything=everything)
    if lineage is not None and len(selected) > 1:
        raise click.UsageError("--lineage is for one leftover: several must not share a lineage")
    options = LaunchOptions(grace_seconds=max(durable_timeout, LOOK_SECONDS))
    return _each(selected, lambda one: upload_one(one, options, lineage), output)


@command.command("rm")
@ids
@everything
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(ids: tuple[str, ...], everything: bool, yes: bool) -> int:
    """Remove what is left, durable or not, after confirmation."""
    selected = _select(ids, everything=everything)
    for one in selected:
        lost = f"; not durable: {', '.join(one.not_durable)}" if one.not_durable else ""
        print_message(f"{one.id}: {format_bytes(one.bytes)} in {', '.join(one.paths)}{lost}")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nothing has been removed: add --yes, there is no terminal to ask on")
        click.confirm(f"Remove {count_of(len(selected), 'leftover')}?", abort=True, err=True)
    problems = [problem for one in selected for problem in _failures(remove, one)]
    print_problems(problems)
    return 1 if problems else 0


def _select(names: Sequence[str], *, everything: bool) -> list[Leftover]:
    if names and everything:
        raise click.UsageError(f"--all and {', '.join(names)} contradict each other: give one of them")
    if not names and not everything:
        raise click.UsageError("specify one ID or more, or --all")
    found = find_leftovers()
    known = {one.id: one for one in found.leftovers}
    in_use = {run.id: run for run in found.in_use}
    NotFound.raise_any(
        use_problem(in_use[name]) if name in in_use else _unknown(name, known)
        for name in names
        if name not in known
    )
    return list(found.leftovers) if everything else [known[name] for name in dict.fromkeys(names)]


def _unknown(name: str, known: Collection[str]) -> Problem:
    remedy = did_you_mean(name, known, LISTED)
    return Problem(f"there is no leftover {name!r}", f"{count_of(len(known), 'leftover')} here", remedy)


def _failures(act: Callable[[Leftover], Any], one: Leftover) -> Sequence[Problem]:
    try:
        act(one)
    except FerryError as error:
        return error.problems
    return ()


def _each(selected: Sequence[Leftover], act: Callable[[Leftover], Durability], output: str) -> int:
    """Upload each; the problems of one do not stop the others."""
    results = []
    for one in selected:
        print_message(f"{one.id}: uploading {', '.join(one.not_durable) or 'nothing'}")
        try:
            durability = act(one)
        except FerryError as error:
            hopeless = isinstance(error, PermanentError)
            durability = Durability(False, one.not_durable, error.problems, hopeless=hopeless)
        results.append({"id": one.id} | msgspec.to_builtins(durability))
        if durability.durable:
            where = one.destination or one.outputs_destination
            print_message(f"{one.id}: durable at {where}, and removed from here")
        else:
            print_message(f"{one.id}: not durable: {', '.join(durability.pending) or 'unknown'}", "red")
            print_problems(durability.problems)
    if output == "json":
        print_json(results)
    return 0 if all(result["durable"] for result in results) else EXIT_NOT_DURABLE


def _row(one: Leftover) -> tuple[str, ...]:
    age = format_age(datetime.fromtimestamp(one.started_at, UTC))
    lost = ", ".join(one.not_durable) or ("nothing" if one.trained or not one.problem else "unknown")
    where = one.destination or one.outputs_destination or "unknown"
    words = " ".join(shlex.join(one.command).split()) or "unknown"
    return one.id, age, format_bytes(one.bytes), lost, where, textwrap.shorten(words, COMMAND_WIDTH)


def _print_rest(found: Found) -> None:
    if found.in_use:
        names = ", ".join(run.id for run in found.in_use)
        print_message(f"{count_of(len(found.in_use), 'run')} in use, left out: {names}")
    if found.others:
        print_message(f"directories of other users, left out: {found.others:,}")
