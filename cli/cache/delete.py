"""`podferry cache delete`: removes a cache from a cluster."""

from __future__ import annotations

import click

from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, no_cache, refuse_if_read
from podferry.cli.cache.live_objects import find_objects, remove_object
from podferry.cli.live_cluster import LiveCluster


@click.command()
@cache_args
@click.option(
    "--force", is_flag=True, help="Also while pods read from it: they take the rest from the source."
)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@click.option(
    "--missing-ok", is_flag=True, help="A cache that is gone is no error, as in a run after this one."
)
def delete(
    name: str,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
    force: bool,
    dry_run: bool,
    missing_ok: bool,
) -> None:
    """Remove the cache NAME: the objects that `create` has printed, but for the ClusterRole of all caches.

    What its holders have is lost. Refused while pods read from it.
    """
    cluster = LiveCluster(kubeconfig, context)
    found = find_objects(cluster, namespace, name)
    if not found and not missing_ok:
        raise no_cache(namespace, name)
    if not force:
        for report in LiveCaches(cluster).reports(namespace, name):
            refuse_if_read(report)
    for thing in found:
        if not dry_run:
            remove_object(cluster, thing)
        click.echo(f"{thing} {'would be removed' if dry_run else 'removed'}")
