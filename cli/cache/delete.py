"""`podferry cache delete`: removes a cache from a cluster."""

from __future__ import annotations

import click

from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, no_cache
from podferry.cli.cache.live_objects import find_objects, remove_object
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import Refused
from podferry.contract.quantity import count_of
from podferry.sidecar.runtime.messages import print_message

SHOWN_READERS = 5


@click.command()
@cache_args
@click.option(
    "--force", is_flag=True, help="Also while pods read from it: they take the rest from the source."
)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
def delete(
    name: str, namespace: str, kubeconfig: str | None, context: str | None, force: bool, dry_run: bool
) -> None:
    """Remove the cache NAME: the objects that `create` has printed, but for the ClusterRole of all caches.

    What its holders have is lost. Refused while pods read from it.
    """
    cluster = LiveCluster(kubeconfig, context)
    found = find_objects(cluster, namespace, name)
    if not found:
        raise no_cache(namespace, name)
    if not force:
        _refuse_if_read(LiveCaches(cluster), namespace, name)
    for thing in found:
        if not dry_run:
            remove_object(cluster, thing)
        click.echo(f"{thing} {'would be removed' if dry_run else 'removed'}")


def _refuse_if_read(caches: LiveCaches, namespace: str, name: str) -> None:
    reports = caches.reports(namespace, name)
    for problem in dict.fromkeys(one.problem for report in reports for one in report.holders if one.problem):
        print_message(problem, "yellow")
    readers = sorted({reader for report in reports for reader in report.readers})
    if readers:
        shown = ", ".join(readers[:SHOWN_READERS]) + (", …" if len(readers) > SHOWN_READERS else "")
        what = f"the cache is in use by {count_of(len(readers), 'pod')}"
        raise Refused.of(what, shown, "Wait until they have started, or give --force")
