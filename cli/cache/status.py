"""`podferry cache status`: what the caches of a cluster hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from podferry.cache.manifests.cache_spec import parse_cache_name
from podferry.cache.report.cache_report import CacheReport, HolderReport
from podferry.cli.cache.cache_args import NAMESPACE_NAME
from podferry.cli.cache.live_caches import LiveCaches, no_cache
from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.cluster_options import cluster_options
from podferry.cli.options.param_types import ParsedParam
from podferry.cli.output import format_age, print_json, print_table, print_yaml
from podferry.contract.manifest import printable
from podferry.contract.quantity import format_bytes
from podferry.sidecar.runtime.messages import print_message

COLUMNS = ("name", "total size", "cached size", "avail space", "runtime", "phase", "age")
WIDE = ("namespace", "source")
NUMBERS = ("total size", "cached size", "avail space")
NODE_COLUMNS = ("node", "holder", "total size", "cached size", "avail space", "phase")
WATCH_SECONDS = 2.0
PRINTERS = {"json": print_json, "yaml": print_yaml}
SUMS = ("phase", "total_bytes", "cached_bytes", "free_bytes")
"""What is computed of a cache, and of each holder."""


@click.command()
@click.argument("name", type=ParsedParam("NAME", parse_cache_name), required=False)
@click.option("--namespace", "-n", type=NAMESPACE_NAME, help="Of the holders.  [default: all]")
@click.option("--watch", "-w", is_flag=True, help="Print it again whenever it changes, until interrupted.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    help="Output format; wide: also where it comes from, and a line for each holder.",
)
@cluster_options
def status(
    name: str | None,
    namespace: str | None,
    watch: bool,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Print what caches hold, as their holders say at this moment."""
    live = LiveCaches(LiveCluster(kubeconfig, context))
    shown: list[CacheReport] | None = None
    while True:
        found = live.reports(namespace, name)
        if not found:
            raise no_cache(namespace, name)
        if found != shown:
            _print(found, output)
        if not watch:
            return
        shown = found
        time.sleep(WATCH_SECONDS)


def _print(reports: Sequence[CacheReport], output: str) -> None:
    if output in PRINTERS:
        PRINTERS[output]([_document(report) for report in reports])
        return
    wide = output == "wide"
    print_table((*COLUMNS, *(WIDE if wide else ())), [_row(one, wide=wide) for one in reports], NUMBERS)
    for report in reports:
        if wide:
            print_table(NODE_COLUMNS, _holder_rows(report), NUMBERS)
        for problem in report.problems:
            print_message(f"{report.name}: {problem}")
    sys.stdout.flush()


def _document(report: CacheReport) -> dict[str, Any]:
    """Everything, with what the columns are computed to."""
    holders = [{**msgspec.structs.asdict(one), **_sums(one)} for one in report.holders]
    more = {"ready": report.ready, "problems": report.problems, "holders": holders}
    return {**msgspec.structs.asdict(report), **_sums(report), **more}


def _sums(one: CacheReport | HolderReport) -> dict[str, Any]:
    return {name: getattr(one, name) for name in SUMS}


def _row(report: CacheReport, *, wide: bool) -> list[str]:
    sizes = (report.total_bytes, report.cached_bytes, report.free_bytes)
    row = [
        report.name,
        *map(format_bytes, sizes),
        f"{report.ready}/{report.wanted}",
        report.phase.value,
        format_age(datetime.fromtimestamp(report.created, UTC)),
    ]
    return [*row, report.namespace, printable(report.source)] if wide else row


def _holder_rows(report: CacheReport) -> list[list[str]]:
    return [
        [
            one.node or "-",
            one.pod,
            *map(format_bytes, (one.total_bytes, one.cached_bytes, one.free_bytes)),
            one.phase.value,
        ]
        for one in report.holders
    ]
