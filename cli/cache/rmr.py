"""`podferry cache rmr`: removes a path from the source of a cache."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import click

from podferry.cache.report.cache_report import CacheReport
from podferry.cli.cache.cache_args import cache_args
from podferry.cli.cache.live_caches import LiveCaches, refuse_if_read
from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.store_options import access_options, store_at, store_config_of
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.errors import InvalidSpec, NotFound, Problem, Refused
from podferry.contract.file_names import name_problem
from podferry.contract.manifest import Entry, printable
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import READ_ONLY_SCHEMES, Uri
from podferry.sidecar.runtime.log_setup import configure_unless_done
from podferry.sidecar.runtime.messages import print_message
from podferry.sidecar.runtime.retry import retry
from podferry.storage.store import Store, StoreConfig

ATTEMPTS = 5
MOUNTED = ("file", "pvc")
"""Schemes of sources that are paths in the holders' file system: the same path here is another directory."""


@click.command()
@cache_args
@click.argument("path")
@click.option("--yes/--dry-run", "delete", default=False, help="Remove, or only report.")
@click.option("--force", is_flag=True, help="Also while pods read from the cache: they may fail.")
@access_options
def rmr(name: str, path: str, delete: bool, force: bool, **options: Any) -> None:
    """Report what is below PATH in the source of the cache NAME; --yes removes it.

    PATH is a file or a directory, relative to the source. Pods that start later do not get it. Holders keep
    what they have of it until they start again. If interrupted, run it again.
    """
    configure_unless_done()
    cluster = LiveCluster(options.pop("kubeconfig"), options.pop("context"))
    report = LiveCaches(cluster).report(options.pop("namespace"), name)
    wanted, uri = _checked(path), _source(report)
    if delete and not force:
        refuse_if_read(report)
    entries = asyncio.run(_remove(uri, wanted, store_config_of(**options), delete=delete))
    if not delete:
        for entry in entries:
            click.echo(f"remove {printable(entry.name)} ({format_bytes(entry.size)})")
    total = f"{count_of(len(entries), 'file')}, {format_bytes(sum(entry.size for entry in entries))}"
    if delete:
        print_message(f"removed: {total}")
    else:
        print_message(f"{total} would be removed; nothing has been changed: add --yes to remove it")


def _checked(path: str) -> str:
    """The path without slashes at its end; raises `InvalidSpec` for what is no path in a dataset."""
    plain = path.rstrip("/")
    problem = name_problem(plain)
    if problem is not None:
        raise InvalidSpec.of(f"PATH: {problem.what}", problem.measured, "Write it relative to the source")
    if plain.split("/")[0] == PRIVATE:
        raise InvalidSpec.of("PATH: podferry's own records are there", plain, "Choose another path")
    return plain


def _source(report: CacheReport) -> Uri:
    reference = parse_reference(report.source)
    if reference.frozen:
        remedy = "Freeze the dataset again without it, and create the cache with that"
        raise Refused.of("the dataset is frozen: pods would miss the files", str(reference), remedy)
    if reference.uri.scheme in MOUNTED:
        remedy = "Remove it with a pod that mounts the same volume"
        raise Refused.of("the source is in the holders' pods, not here", str(reference.uri), remedy)
    if reference.uri.scheme in READ_ONLY_SCHEMES:
        raise Refused(Problem("nothing can be removed there", str(reference.uri), "Remove it at its origin"))
    return reference.uri


async def _remove(uri: Uri, path: str, config: StoreConfig, *, delete: bool) -> list[Entry]:
    """The files at a path, removed if asked for."""
    async with store_at(uri, config) as store:
        entries = await retry(ATTEMPTS, lambda: _entries(store, path))
        if not entries:
            raise NotFound.of("there is nothing at this path", f"{uri}, {path}", "Check the path")
        if delete:
            await retry(ATTEMPTS, lambda: store.delete([entry.name for entry in entries]))
        return entries


async def _entries(store: Store, path: str) -> list[Entry]:
    found = [entry async for entry in store.entries(path)]
    with suppress(NotFound):  # a directory
        found.append(await store.stat(path))
    return sorted(found, key=lambda entry: entry.name)
