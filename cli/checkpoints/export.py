"""`podferry checkpoints export`: copies a checkpoint from one store to another, or within one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import click

from podferry.cli.checkpoints.confidence import confidence_of
from podferry.cli.checkpoints.lineage_args import SelectedLineages, restore_source, select_lineages
from podferry.cli.options.store_options import (
    access_options,
    parse_local_path,
    parse_location,
    store_at,
    store_configs,
    target_options,
)
from podferry.cli.output import output_option, print_json
from podferry.contract.destination.commit import Commit
from podferry.contract.errors import InvalidSpec
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.choice import RestoreChoice, describe_passed_over
from podferry.sidecar.checkpoint.restore.downloader import for_rank
from podferry.sidecar.checkpoint.restore.exporter import Exporter, ExportResult
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.runtime.messages import print_message
from podferry.storage.factory import server_copy_between
from podferry.storage.store import StoreConfig


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported commit: what was done, and the newer ones that were passed over, in one line."""

    commit: Commit
    result: ExportResult
    passed_over: str


@click.command("export", short_help="Copy a checkpoint to a folder of a store.")
@click.argument("uri")
@click.argument("lineage", required=False)
@click.argument("checkpoint", required=False)
@click.option("--to", "target", required=True, metavar="URI", help="Target folder, empty or incomplete.")
@click.option("--rank", type=click.IntRange(min=0), help="Prefer this rank's files.  [default: the lowest]")
@target_options
@output_option
@access_options
def command(
    uri: str,
    lineage: str | None,
    checkpoint: str | None,
    target: str,
    rank: int | None,
    output: str,
    **access: Any,
) -> int:
    """Copy a checkpoint to a folder of a store, every file under its own name.

    Without CHECKPOINT, exports the newest that is sure; `latest` takes a doubtful one as well. Within one
    store the store copies by itself where it can; other bytes are compared with the commit's checksums. A
    folder with other content is refused. If it fails, run the same command again: equal files are kept.
    For a local directory use `restore`.
    """
    location = _parse_target(target)
    source = parse_location(uri)
    words = (lineage, checkpoint)
    exported = asyncio.run(_export(source, words, location, rank, store_configs(source, location, access)))
    _print(exported, location, output)
    return 0


def _parse_target(text: str) -> Uri:
    if parse_local_path(text) is not None:
        remedy = f"For a directory: podferry checkpoints restore … --to {text}. For a mounted store: file://…"
        raise InvalidSpec.of("the target is not a URI", repr(text), remedy)
    location = parse_location(text)
    if not location.name:
        raise InvalidSpec.of(
            "the target is an entire bucket or share", text, f"Name a folder: {location / 'NAME'}"
        )
    return location


async def _export(
    uri: Uri,
    words: Sequence[str | None],
    target: Uri,
    rank: int | None,
    configs: tuple[StoreConfig, StoreConfig],
) -> Exported:
    async with select_lineages(uri, words, configs[0]) as selected:
        source = await restore_source(selected)
        choice = RestoreChoice(source, await source.reader.history())
        found = await anext(choice.candidates(), None)
        if found is None:
            raise await choice.failure()
        _refuse_lineage(selected, target)
        commit = for_rank(found, rank)
        async with (
            store_at(target.parent, configs[1]) as store,
            server_copy_between(selected.destination.uri, target, configs) as server_copy,
        ):
            folder = LineageStore(store, target.name)
            with progress_bar("exporting") as on_progress:
                exporter = Exporter(source.reader.store, folder, server_copy, on_progress)
                result = await exporter.export(commit)
        passed_over = describe_passed_over(choice.passed_over, choice.passed_over_count)
        return Exported(commit, result, passed_over)


def _refuse_lineage(selected: SelectedLineages, target: Uri) -> None:
    """A lineage's folder is podferry's own: what no commit lists there may be removed as uncommitted."""
    for reader in selected.readers:
        lineage = reader.store.uri
        if target.root == lineage.root and PurePosixPath(target.key).is_relative_to(lineage.key):
            remedy = "Export to another folder"
            raise InvalidSpec.of("the target is in a lineage", f"{target} is below {lineage}", remedy)


def _print(exported: Exported, target: Uri, output: str) -> None:
    commit, result = exported.commit, exported.result
    if output == "json":
        print_json(
            {
                "target": str(target),
                "name": commit.name,
                "checkpoint": commit.checkpoint,
                "sequence": commit.sequence,
                "confidence": commit.confidence,
                "bytes": commit.bytes,
                "kept": result.kept,
                "copied": result.copied,
                "sent": result.sent,
            }
        )
        return
    click.echo(str(target))
    if exported.passed_over:
        print_message(f"passed over: {exported.passed_over}", "yellow")
    print_message(f"exported: {commit.name}, {confidence_of(commit)}, {format_bytes(commit.bytes)}")
    moved = f"{len(result.sent):,} sent, {len(result.copied):,} copied by the store"
    print_message(f"{count_of(len(commit.files), 'file')}: {moved}, {len(result.kept):,} there already")
