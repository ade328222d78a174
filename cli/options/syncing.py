"""Options of verbs that sync, and what these print."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import click

from podferry.cli.options.named_options import Verb, add_options
from podferry.cli.options.store_options import (
    access_options,
    selection_options,
    store_configs,
    target_options,
)
from podferry.cli.output import output_option, print_json
from podferry.contract.dataset_reference import Reference
from podferry.contract.manifest import printable
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.sidecar.sync.comparison import SyncOptions
from podferry.sidecar.sync.sync import Sync, SyncPreview, SyncResult

FLAGS = ("delete", "unpack", "size_only")


def sync_options(verb: Verb) -> Verb:
    """Add the options of a sync, which `run_sync` takes."""
    options = (
        selection_options(),
        click.option("--delete", is_flag=True, help="Remove files that the source no longer has."),
        click.option("--unpack", is_flag=True, help="Write the members of archives instead of the archives."),
        click.option("--size-only", is_flag=True, help="Files of equal size count as equal."),
        click.option("--dry-run", is_flag=True, help="Print what would be moved and removed, and why."),
        output_option,
        access_options,
        target_options,
    )
    return add_options(verb, options)


def run_sync(source: Reference, target: Uri, given: dict[str, Any]) -> int:
    """Sync, or only compare; prints what was done. The exit code: whether the destination is complete."""
    globs = (sum(given[name], ()) for name in ("include", "exclude"))
    flags = {name: given[name] for name in FLAGS}
    options = SyncOptions(Selection(*globs), share=given["shard"], **flags)
    configs = store_configs(source.uri, target, given)
    if given["dry_run"]:
        return _print_preview(asyncio.run(Sync(source, target, *configs, options).preview()), given["output"])
    started_at = time.monotonic()
    with progress_bar("syncing") as on_progress:
        result = asyncio.run(Sync(source, target, *configs, options, on_progress).run())
    _print_result(result, time.monotonic() - started_at, given["output"])
    return 1 if result.problems else 0


def _print_preview(preview: SyncPreview, output: str) -> int:
    plan = preview.plan
    if output == "json":
        print_json(
            {
                "moves": [
                    {"name": move.entry.name, "size": move.entry.size, "reason": move.reason}
                    for move in plan.moves
                ],
                "unpacks": [archive.name for archive in plan.unpacks],
                "removals": [removal.name for removal in preview.removals],
                "kept": plan.kept_files,
                "bytes": plan.bytes,
            }
        )
        return 0
    for move in plan.moves:
        click.echo(f"move {printable(move.entry.name)} ({move.reason}, {format_bytes(move.entry.size)})")
    for archive in plan.unpacks:
        click.echo(f"unpack {printable(archive.name)} ({format_bytes(archive.entry.size)})")
    for removal in preview.removals:
        click.echo(f"remove {printable(removal.name)}")
    files = f"{len(plan.moves) + len(plan.unpacks):,} to move, {format_bytes(plan.bytes)}"
    print_message(f"{files}; {plan.kept_files:,} equal; {len(preview.removals):,} to remove")
    return 0


def _print_result(result: SyncResult, seconds: float, output: str) -> None:
    if output == "json":
        print_json(
            {
                "moved": len(result.moved),
                "bytes": result.bytes,
                "kept": result.kept,
                "removed": len(result.removed),
                "seconds": round(seconds, 3),
                "problems": [str(problem) for problem in result.problems],
            }
        )
        return
    print_problems(result.problems)
    moved = f"{count_of(len(result.moved), 'file')} moved, {format_bytes(result.bytes)} in {seconds:.2f} s"
    print_message(f"{moved}; {result.kept:,} equal; {len(result.removed):,} removed")
