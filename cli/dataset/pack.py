"""`podferry dataset pack` and `verify`: pack many small files into few archives, and verify them."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from podferry.cli.dataset.size_histogram import recommended_size
from podferry.cli.options.param_types import ParsedParam
from podferry.cli.options.store_options import access_options, parse_location, store_at, store_config_of
from podferry.cli.output import output_option, print_json
from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.manifest import Manifest
from podferry.contract.quantity import count_of, format_bytes, parse_bytes, quantity_at_least
from podferry.contract.spec import PREFIX
from podferry.contract.uri import Uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.pack.builder import SHARD_BYTES, PackBuilder, PackResult
from podferry.sidecar.pack.reader import Pack, open_pack
from podferry.sidecar.pack.verify import verify_pack
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.storage.listing.dataset import list_dataset, open_dataset
from podferry.storage.store import StoreConfig

MIN_SHARD_BYTES, MAX_SHARD_BYTES = 1 << 20, 5 << 40
"""A smaller shard is hardly worth a request of its own; S3 accepts no larger object."""


def _parse_shard_size(text: str) -> int:
    size = parse_bytes(text)
    if MIN_SHARD_BYTES <= size <= MAX_SHARD_BYTES:
        return size
    raise InvalidSpec.of("the shard size is out of range", repr(text), "Write 1Mi to 5Ti, such as 256Mi")


@click.command("pack")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option(
    "--shard-size",
    type=ParsedParam("SIZE", _parse_shard_size),
    default=quantity_at_least(SHARD_BYTES),
    help="Maximum size of an archive.",
)
@output_option
@access_options
def pack(source: str, target: str, shard_size: int, output: str, **access: Any) -> int:
    """Pack many small files into few archives.

    Packs the files below SRC into archives at DST, and prints a reference to the pack. If interrupted, run
    the same command again to resume. SRC is not changed. A trainer that uses DST as its dataset sees the
    original files of SRC.
    """
    config = store_config_of(**access)
    result, objects = asyncio.run(_build(parse_location(source), parse_location(target), shard_size, config))
    sizes = [entry.size for entry in result.index.entries]
    shards = len(result.index.shards)
    reference = str(reference_to(objects))
    if output == "json":
        totals = {"files": len(sizes), "bytes": sum(sizes), "dataset_size": recommended_size(sizes)}
        print_json({"reference": reference, "shards": shards, "shards_kept": result.kept, **totals})
        return 0
    click.echo(reference)
    kept = f", {result.kept:,} of them from an earlier run" if result.kept else ""
    files = f"{count_of(len(sizes), 'file')}, {format_bytes(sum(sizes))}"
    print_message(f"packed: {files}, in {count_of(shards, 'shard')}{kept}")
    print_message(f"unpacked in memory it needs {PREFIX}dataset-size: {recommended_size(sizes)}")
    return 0


@click.command("verify")
@click.argument("uri")
@output_option
@access_options
def verify(uri: str, output: str, **access: Any) -> int:
    """Compare every file of a pack with its index."""
    opened, problems = asyncio.run(_verify(parse_location(uri), store_config_of(**access)))
    files, shards = len(opened.names), len(opened.index.shards)
    if output == "json":
        print_json({"files": files, "shards": shards, "problems": [str(problem) for problem in problems]})
    elif problems:
        print_problems(problems)
    else:
        print_message(f"complete: {count_of(files, 'file')} in {count_of(shards, 'shard')}")
    return 1 if problems else 0


async def _build(
    source: Uri, target: Uri, shard_bytes: int, config: StoreConfig
) -> tuple[PackResult, Manifest]:
    dataset = await open_dataset(source, config)
    try:
        async with store_at(target, config) as store:
            result = await PackBuilder(dataset, store, shard_bytes).run()
            return result, await list_dataset(store)
    finally:
        await dataset.store.close()


async def _verify(uri: Uri, config: StoreConfig) -> tuple[Pack, list[Problem]]:
    dataset = await open_dataset(uri, config)
    try:
        opened = await open_pack(dataset.store, dataset.manifest)
        return opened, await verify_pack(opened, dataset.store, PrefetchSettings())
    finally:
        await dataset.store.close()
