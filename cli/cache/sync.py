"""`podferry cache sync`: makes the source of a cache equal to a dataset."""

from __future__ import annotations

from typing import Any

import click

from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches
from podferry.cli.cache.refreshing import ask_holders
from podferry.cli.cache.source import writable_source
from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.store_options import parse_dataset
from podferry.cli.options.syncing import run_sync, sync_options
from podferry.sidecar.runtime.log_setup import configure_unless_done


@click.command()
@cache_args
@click.argument("dataset")
@sync_options
def sync(
    name: str, namespace: str, kubeconfig: str | None, context: str | None, dataset: str, **options: Any
) -> int:
    """Make the source of the cache NAME equal to DATASET.

    Moves only files that differ, each whole. The holders take them, too, and pods that start later get them.
    If interrupted, run it again. The options with --to concern the cache's source.
    """
    configure_unless_done()
    caches = LiveCaches(LiveCluster(kubeconfig, context))
    code = run_sync(parse_dataset(dataset), writable_source(caches.source(namespace, name)), options)
    if code == 0 and not options["dry_run"]:
        ask_holders(caches, namespace, name)
    return code
