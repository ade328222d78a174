"""`podferry cache warmup`: waits until every holder has the dataset, as it is at its source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set

import click

from podferry.cache.report.cache_report import CacheReport, Phase
from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches
from podferry.cli.cache.live_workload import LiveWorkload
from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.param_types import SECONDS
from podferry.contract.errors import PermanentError, Problem, Unavailable
from podferry.contract.quantity import count_of, format_bytes
from podferry.sidecar.control.progress_bar import progress_bar
from podferry.sidecar.runtime.messages import print_message

POLL_SECONDS = 2.0
PATIENCE_SECONDS = 3600.0


@click.command()
@cache_args
@click.option("--timeout", type=SECONDS, default=PATIENCE_SECONDS, help="How long to wait.")
def warmup(name: str, namespace: str, kubeconfig: str | None, context: str | None, timeout: float) -> None:
    """Start the holders of the cache NAME if they were stopped, and wait until each has the dataset.

    Holders that have it list the source again, and fetch what has changed. Ends with an error if the dataset
    cannot be fetched, or the time is over. If interrupted, run it again.
    """
    cluster = LiveCluster(kubeconfig, context)
    caches = LiveCaches(cluster)
    report = caches.report(namespace, name)
    started = LiveWorkload(cluster, namespace, name).start()
    if started:
        more = (
            f"for another number: kubectl scale -n {namespace} statefulset/podferry-cache-{name} --replicas=N"
        )
        print_message(f"{name} had no holders: {count_of(started, 'holder')} started; {more}")
    with progress_bar("fetching") as on_progress:
        report = _wait(caches, report, timeout, on_progress)
    holders = count_of(report.ready, "holder")
    click.echo(f"{name}: {holders} with {format_bytes(report.total_bytes)} each")


def _wait(
    caches: LiveCaches, report: CacheReport, seconds: float, on_progress: Callable[[int, int], None]
) -> CacheReport:
    # What a holder has refused before may have been mended since: only another refusal counts.
    until, asked, old, said = time.monotonic() + seconds, False, report.refusals, set[str]()
    while True:
        # A holder that is about to be replaced could end in the middle of the request.
        if not asked and not report.is_replacing:
            caches.refresh(report)
            asked = True
        report = caches.report(report.namespace, report.name)
        on_progress(sum(one.cached_bytes for one in report.holders), report.total_bytes * report.wanted)
        if asked and _is_done(report, old):
            return report
        if report.phase is Phase.FAILED:  # what may be mended while it waits
            _print_new(report.problems, said)
        if time.monotonic() > until:
            raise _too_late(report, seconds)
        time.sleep(POLL_SECONDS)


def _print_new(problems: Sequence[str], said: set[str]) -> None:
    for problem in problems:
        if problem not in said:
            print_message(problem, "yellow")
    said.update(problems)


def _is_done(report: CacheReport, old: Set[tuple[str, str]]) -> bool:
    """Whether each holder has the dataset; raises `PermanentError` if that cannot be, by new refusals."""
    if report.is_replacing:
        return False
    if report.phase is Phase.READY:
        PermanentError.raise_any(_problems(report))
        return True
    if report.cannot_fetch or (report.phase is Phase.FAILED and report.refusals - old):
        raise PermanentError(*_problems(report))
    return False


def _too_late(report: CacheReport, seconds: float) -> Unavailable:
    what = f"the dataset is complete at {report.ready} of {count_of(report.wanted, 'holder')}"
    if report.phase is Phase.REFRESHING:
        what = "holders have not taken yet what has changed at the source"
    late = Problem(what, f"after {seconds:g} s", "Wait longer with --timeout")
    return Unavailable(late, *_problems(report))


def _problems(report: CacheReport) -> list[Problem]:
    return [Problem(text.removesuffix(".")) for text in report.problems]
