"""`podferry cache delete`: removes a cache from a cluster."""

from __future__ import annotations

from contextlib import suppress

import click

from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, few_of, no_cache, refuse_if_read
from podferry.cli.cache.live_objects import find_objects, remove_object, users_of_claims
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import AccessDenied, Problem
from podferry.contract.quantity import count_of
from podferry.sidecar.runtime.messages import print_problems


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

    What its holders have in volumes of their own is lost. What they share stays on the nodes, until another
    cache needs the space. Refused while pods read from it.
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
    users: list[str] = []
    if not dry_run:
        with suppress(AccessDenied):  # to list pods is a right that the removal does not need
            users += users_of_claims(cluster, found)
    if users:
        what = f"{count_of(len(users), 'pod')}, ended or not, still keep claims of the cache from going"
        remedy = f"Delete them before you create {name} again"
        print_problems([Problem(what, few_of(users), remedy)], "yellow")
