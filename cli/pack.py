"""`podferry dataset pack` and `verify`: many small files into few archives, and whether these are whole."""

from __future__ import annotations

from typing import Any

import click

from podferry.cli import output as printing
from podferry.cli.options import Parsed, access_options, config_of, opened, output_option, place, run
from podferry.cli.size_histogram import dataset_size
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.manifest import Manifest
from podferry.contract.quantity import format_bytes, parse_bytes, quantity_at_least
from podferry.contract.reference import reference_to
from podferry.contract.spec import PREFIX
from podferry.contract.uri import Uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.pack.audit import pack_problems
from podferry.sidecar.pack.builder import SHARD_BYTES, PackBuilder, PackResult
from podferry.sidecar.pack.reader import Pack, open_pack
from podferry.storage.listing.dataset import list_dataset, open_dataset
from podferry.storage.store import StoreConfig

LEAST, MOST = 1 << 20, 5 << 40
"""Below, a shard is hardly worth a request of its own; above, S3 takes no object."""


def _shard_size(text: str) -> int:
    found = parse_bytes(text)
    if LEAST <= found <= MOST:
        return found
    raise InvalidSpec.of("a shard is no archive of that size", repr(text), "Write 1Mi to 5Ti, such as 256Mi")


@click.command("pack")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option(
    "--shard-size",
    type=Parsed("SIZE", _shard_size),
    default=quantity_at_least(SHARD_BYTES),
    show_default=True,
    help="Of an archive, at most.",
)
@output_option
@access_options
def pack(source: str, target: str, shard_size: int, output: str, **access: Any) -> int:
    """Pack the files below SRC into few archives at DST, and print the reference of the pack.

    What is interrupted goes on when the command is repeated. SRC stays as it is. Wherever podferry brings
    DST, the trainer finds the files that lie below SRC.
    """
    config = config_of(**access)
    result, listed = run(_pack(place(source), place(target), shard_size, config))
    entries = result.index.entries
    sizes = [entry.size for entry in entries]
    if output == "json":
        shards = {"shards": len(result.index.shards), "shards_kept": result.kept}
        figures = {"files": len(sizes), "bytes": sum(sizes), "dataset_size": dataset_size(sizes)}
        printing.show_json({"reference": str(reference_to(listed)), **shards, **figures})
        return 0
    click.echo(str(reference_to(listed)))
    kept = f", {result.kept:,} of them from an earlier run" if result.kept else ""
    told = f"{_count(len(sizes), 'file')}, {format_bytes(sum(sizes))}"
    printing.say(f"packed: {told}, in {_count(len(result.index.shards), 'shard')}{kept}")
    printing.say(f"unpacked in memory it takes {PREFIX}dataset-size: {dataset_size(sizes)}")
    return 0


@click.command("verify")
@click.argument("uri")
@output_option
@access_options
def verify(uri: str, output: str, **access: Any) -> int:
    """Read the pack at URI again, and compare every file with its index."""
    config = config_of(**access)
    found, problems = run(_verify(place(uri), config))
    files = len(found.names)
    if output == "json":
        told = [str(problem) for problem in problems]
        printing.show_json({"files": files, "shards": len(found.index.shards), "problems": told})
    else:
        printing.complain(problems)
        if not problems:
            printing.say(f"whole: {_count(files, 'file')} in {_count(len(found.index.shards), 'shard')}")
    return 1 if problems else 0


async def _pack(
    source: Uri, target: Uri, shard_bytes: int, config: StoreConfig
) -> tuple[PackResult, Manifest]:
    dataset = await open_dataset(source, config)
    try:
        async with opened(target, config) as store:
            result = await PackBuilder(dataset, store, shard_bytes).run()
            return result, await list_dataset(store)
    finally:
        await dataset.store.close()


async def _verify(uri: Uri, config: StoreConfig) -> tuple[Pack, list[Problem]]:
    dataset = await open_dataset(uri, config)
    try:
        found = await open_pack(dataset.store, dataset.manifest)
        return found, await pack_problems(found, dataset.store, PrefetchSettings())
    finally:
        await dataset.store.close()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
