"""`podferry dataset sync`: makes a destination equal to a dataset, and moves only what differs."""

from __future__ import annotations

from typing import Any

import click

from podferry.cli.options.store_options import parse_dataset, parse_location
from podferry.cli.options.syncing import run_sync, sync_options
from podferry.sidecar.runtime.log_setup import configure_unless_done


@click.command("sync")
@click.argument("source")
@click.argument("destination")
@sync_options
def sync(source: str, destination: str, **options: Any) -> int:
    """Make DESTINATION equal to the dataset SOURCE.

    Moves only files that differ, each whole. If interrupted, run the same command again to resume: what was
    moved is not moved again. Both places are URIs or local directories. With --shard, several processes
    share the work.
    """
    configure_unless_done()
    return run_sync(parse_dataset(source), parse_location(destination), options)
