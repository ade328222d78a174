"""`podferry checkpoints confirm`: settles the doubts about a checkpoint that a person knows is complete."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import msgspec

from podferry.cli.checkpoints.confidence import confidence_lines, read_confirmations
from podferry.cli.checkpoints.lineage_args import read_history, select_lineages
from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import output_option, print_json, print_pairs
from podferry.contract.destination.commit import Commit
from podferry.contract.destination.confidence import Confirmation, Confirmer
from podferry.contract.errors import Problem, Refused
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.runtime.messages import print_message
from podferry.storage.store import StoreConfig

REASON = "confirmed by hand"


@click.command("confirm")
@click.argument("uri")
@click.argument("lineage")
@click.argument("checkpoint", required=False)
@click.option("--reason", default=REASON, help="How you know that it is complete; kept with it.")
@output_option
@access_options
def command(uri: str, lineage: str, checkpoint: str | None, reason: str, output: str, **access: Any) -> int:
    """Confirm that a doubtful checkpoint is complete.

    It then counts as sure: `restore: auto` takes it. Adds one object and changes none, so it may be done
    while training runs. Refused if a file of the checkpoint is missing or has another size.
    """
    work = _confirm(parse_location(uri), (lineage, checkpoint), reason, store_config_of(**access))
    commit, confirmations, confirmed = asyncio.run(work)
    if output == "json":
        print_json({"confirmed": confirmed, **msgspec.to_builtins(commit), "confirmations": confirmations})
    else:
        print_pairs([("name", commit.name), *confidence_lines(commit, confirmations)])
        print_message(f"{commit.name} is confirmed" if confirmed else f"{commit.name} is sure already")
    return 0


async def _confirm(
    uri: Uri, words: tuple[str, str | None], reason: str, config: StoreConfig
) -> tuple[Commit, list[Confirmation], bool]:
    """Confirm a commit if it is doubtful; returns it as it is now, and whether anything was written."""
    async with select_lineages(uri, words, config) as selected:
        name, reader = selected.checkpoint_argument(), selected.require_one()
        if name is None:
            raise click.UsageError("name the checkpoint to confirm: `podferry checkpoints ls` lists them")
        commit = (await read_history(reader)).find(name)
        doubtful = not commit.is_sure
        if doubtful:
            Refused.raise_any(await _missing(reader, commit))
            await confirm(reader.store, commit, Confirmer.PERSON, reason)
            commit = (await read_history(reader)).find(commit.checkpoint)
        return commit, await read_confirmations(reader, commit), doubtful


async def _missing(reader: CommitReader, commit: Commit) -> list[Problem]:
    """Why a commit cannot be confirmed: whatever anybody knows, it cannot be restored."""
    remedy = "Restore the object, or confirm another checkpoint"
    return [
        Problem(f"{commit.name} is not complete: {problem.what}", problem.measured, problem.remedy or remedy)
        for problem in await reader.missing_objects(commit)
    ]
