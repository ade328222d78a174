"""`podferry cache clear`: has holders drop what they keep."""

from __future__ import annotations

import click

from podferry.cache.report.cache_report import CacheReport
from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, refuse_if_read
from podferry.cli.cache.live_workload import LiveWorkload
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import NotFound


@click.command()
@cache_args
@click.option("--node", metavar="NODE", help="Only the holder on this node.")
@click.option("--empty", is_flag=True, help="Keep nothing until `podferry cache warmup`: frees the memory.")
@click.option(
    "--force", is_flag=True, help="Also while pods read from it: they take the rest from the source."
)
def clear(
    name: str,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
    node: str | None,
    empty: bool,
    force: bool,
) -> None:
    """Drop what the holders of the cache NAME have, and fetch it again.

    Each holder's pod is replaced. Refused while pods read from the cache.
    """
    if node is not None and empty:
        raise click.UsageError("--empty stops the holders of all nodes: leave --node out")
    cluster = LiveCluster(kubeconfig, context)
    report = LiveCaches(cluster).report(namespace, name)
    pods = _pods(report, node)
    if not force:
        refuse_if_read(report)
    workload = LiveWorkload(cluster, namespace, name)
    if empty:
        workload.stop()
    for pod, where in pods.items():
        if not empty:
            workload.replace(pod)
        click.echo(f"{pod} on {where or 'no node'} {'stops' if empty else 'is replaced'}")


def _pods(report: CacheReport, node: str | None) -> dict[str, str]:
    """The pods to replace, and their nodes."""
    pods = {one.pod: one.node for one in report.holders if node in {None, one.node}}
    if node is not None and not pods:
        nodes = ", ".join(sorted({one.node for one in report.holders if one.node}))
        raise NotFound.of(f"the cache {report.name} has no holder on {node}", "", f"It has some on: {nodes}")
    return pods
