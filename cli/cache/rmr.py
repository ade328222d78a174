"""`podferry cache rmr`: removes a path from the source of a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import click

from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, refuse_if_read
from podferry.cli.cache.refreshing import ask_holders
from podferry.cli.cache.source import writable_source
from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.store_options import access_options, store_at, store_config_of
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import InvalidSpec, NotFound, Problem
from podferry.contract.file_names import name_problem
from podferry.contract.manifest import Entry, printable
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import Uri
from podferry.sidecar.runtime.log_setup import configure_unless_done
from podferry.sidecar.runtime.messages import print_message
from podferry.sidecar.runtime.retry import retry
from podferry.storage.store import Store, StoreConfig

ATTEMPTS = 5


@click.command()
@cache_args
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--yes/--dry-run", "delete", default=False, help="Remove, or only report.")
@click.option("--force", is_flag=True, help="Also while pods read from the cache: they may fail.")
@click.option(
    "--missing-ok", is_flag=True, help="Paths with nothing are no error, as in a run after this one."
)
@access_options
def rmr(
    name: str, paths: tuple[str, ...], delete: bool, force: bool, missing_ok: bool, **options: Any
) -> None:
    """Report what is below each PATH in the source of the cache NAME; --yes removes it.

    PATH is a file or a directory, relative to the source. Pods that start later do not get it, and holders
    drop it when nobody reads it any more. If interrupted, run it again.
    """
    configure_unless_done()
    cluster = LiveCluster(options.pop("kubeconfig"), options.pop("context"))
    caches, namespace = LiveCaches(cluster), options.pop("namespace")
    report = caches.report(namespace, name)
    wanted, uri = checked_paths(paths), writable_source(report.source)
    if delete and not force:
        refuse_if_read(report)
    entries = asyncio.run(
        _remove(uri, wanted, store_config_of(**options), delete=delete, missing_ok=missing_ok)
    )
    if not delete:
        for entry in entries:
            click.echo(f"remove {printable(entry.name)} ({format_bytes(entry.size)})")
    total = f"{count_of(len(entries), 'file')}, {format_bytes(sum(entry.size for entry in entries))}"
    if delete:
        print_message(f"removed: {total}")
        ask_holders(caches, namespace, name)
    else:
        print_message(f"{total} would be removed; nothing has been changed: add --yes to remove it")


def checked_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths without slashes at their end; raises `InvalidSpec` for what is no path."""
    plain = tuple(dict.fromkeys(path.rstrip("/") for path in paths))
    InvalidSpec.raise_any(filter(None, map(_path_problem, plain)))
    return plain


def _path_problem(path: str) -> Problem | None:
    problem = name_problem(path)
    if problem is not None:
        return Problem(f"PATH: {problem.what}", problem.measured, "Write it relative to the source")
    if path.split("/", maxsplit=1)[0] == PRIVATE:
        return Problem("PATH: podferry's own records are there", path, "Choose another path")
    return None


async def _remove(
    uri: Uri, paths: Iterable[str], config: StoreConfig, *, delete: bool, missing_ok: bool
) -> list[Entry]:
    """The files at the paths, removed if asked for. Raises `NotFound` for paths with nothing."""
    async with store_at(uri, config) as store:
        found = {path: await retry(ATTEMPTS, partial(_entries, store, path)) for path in paths}
        if not missing_ok:
            what = "there is nothing at this path"
            missing = (path for path, entries in found.items() if not entries)
            NotFound.raise_any(Problem(what, f"{uri}, {path}", "Check the path") for path in missing)
        entries = sorted({entry for some in found.values() for entry in some})
        if delete:
            await retry(ATTEMPTS, lambda: store.delete([entry.name for entry in entries]))
        return entries


async def _entries(store: Store, path: str) -> list[Entry]:
    found = [entry async for entry in store.entries(path)]
    with suppress(NotFound):  # a directory
        found.append(await store.stat(path))
    return found
