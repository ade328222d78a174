"""`podferry checkpoints gc`: removes old checkpoints and uncommitted data at a destination."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from podferry.cli.checkpoints.lineage_args import select_lineages
from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import output_option, print_json, print_table
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.tombstones import RemovalPlan, listed_objects
from podferry.contract.errors import InvalidSpec, NotFound, PermanentError, Problem
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.orphans import Orphans, active_agents, find_orphans, remove_orphans
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.storage.store import Store, StoreConfig

HEADERS = ("lineage", "what", "sequence", "objects", "size", "name")


@dataclass(frozen=True, slots=True)
class GcOptions:
    """What to remove.

    Attributes:
        keep: Number of intact commits to keep, None for all.
        uncommitted: Also remove data that no commit lists.
        force: The caller knows that no agent is active.
        delete: Remove it; otherwise only report it.
    """

    keep: int | None
    uncommitted: bool
    force: bool
    delete: bool


@dataclass(frozen=True, slots=True)
class GcItem:
    """One line of the report; `bytes` is the space freed."""

    lineage: str
    what: str
    sequence: int | None
    objects: int
    bytes: int
    name: str


@dataclass(slots=True)
class GcResult:
    """What is removed from one lineage, and why not more."""

    lineage: str
    items: list[GcItem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@click.command("gc")
@click.argument("uri")
@click.argument("lineages", nargs=-1, metavar="[LINEAGE]...")
@click.option("--keep", type=click.IntRange(min=1), help="Number of intact commits to keep in each lineage.")
@click.option("--uncommitted", is_flag=True, help="Data that no commit lists; refused if an agent is active.")
@click.option("--force", is_flag=True, help="With --uncommitted: you know that no agent is active there.")
@click.option("--yes/--dry-run", "delete", default=False, help="Remove, or only report.")
@output_option
@access_options
def command(uri: str, lineages: tuple[str, ...], output: str, **options: Any) -> int:
    """Report old checkpoints and uncommitted data; --yes removes them.

    Removes the oldest commits first, each commit before its data. Always keeps the newest intact commit and
    all data that a remaining commit refers to. Safe while training runs. If interrupted, run it again.
    """
    request = GcOptions(*(options.pop(name) for name in ("keep", "uncommitted", "force", "delete")))
    if request.keep is None and not request.uncommitted:
        raise click.UsageError("specify what to remove: --keep N, --uncommitted, or both")
    if request.force and not request.uncommitted:
        raise click.UsageError("--force works only with --uncommitted: nothing else needs it")
    results = asyncio.run(_collect_all(parse_location(uri), lineages, request, store_config_of(**options)))
    _print_results(results, request, output)
    return 1 if any(result.problems for result in results) else 0


async def _collect_all(
    uri: Uri, names: Sequence[str], request: GcOptions, config: StoreConfig
) -> list[GcResult]:
    async with _selected(uri, names, config, uncommitted=request.uncommitted) as readers:
        return [await _collect(GarbageCollector(reader), request) for reader in readers]


async def _collect(collector: GarbageCollector, request: GcOptions) -> GcResult:
    """Process one lineage; its problems do not stop the others."""
    result = GcResult(collector.store.lineage)
    unfinished: dict[str, int] = {}
    try:
        if request.keep is not None:
            plan = await (collector.remove if request.delete else collector.plan)(request.keep)
            result.items += _commit_items(collector.store.lineage, plan)
            unfinished = await (collector.finish if request.delete else collector.unfinished)()
            result.items += _items(collector.store.lineage, "left by an interrupted removal", unfinished)
        if request.uncommitted:
            await _collect_uncommitted(collector, request, result, unfinished)
    except PermanentError as error:
        result.problems += error.problems
    return result


async def _collect_uncommitted(
    collector: GarbageCollector, request: GcOptions, result: GcResult, reported: Collection[str]
) -> None:
    if request.delete:
        orphans = await remove_orphans(collector, force=request.force)
    else:
        orphans = await find_orphans(collector)
        data = {name: size for name, size in orphans.data.items() if name not in reported}
        orphans = Orphans(data, orphans.records)
        if not request.force:
            result.problems += await active_agents(collector.store)
    result.items += _orphan_items(collector.store.lineage, orphans)


@asynccontextmanager
async def _selected(
    uri: Uri, names: Sequence[str], config: StoreConfig, *, uncommitted: bool
) -> AsyncIterator[list[CommitReader]]:
    """Yield the named lineages, or all; with `uncommitted`, lineages without a commit count too."""
    async with select_lineages(uri, (), config) as selected:
        destination, known = selected.destination, list(selected.lineages)
        if str(destination.uri) == str(uri):
            known = await _lineages_with_agents(destination) if uncommitted else known
        elif names:
            measured = f"{uri} is a lineage itself"
            raise InvalidSpec.of(f"unexpected: {' '.join(names)}", measured, "Leave it out")
        wanted = [name.strip("/") for name in names] or known
        measured = f"{count_of(len(known), 'lineage')} below {destination.uri}"
        NotFound.raise_any(
            Problem(f"there is no lineage {name!r}", measured, did_you_mean(name, known))
            for name in wanted
            if name not in known
        )
        yield [CommitReader(LineageStore(destination, name)) for name in dict.fromkeys(wanted)]


async def _lineages_with_agents(destination: Store) -> list[str]:
    """Lineages in which an agent has started, even if it has not committed."""
    folders = [name[:-1] for name in await destination.children() if name.endswith("/")]
    return [name for name in folders if f"{PRIVATE}/" in await destination.children(name)]


def _commit_items(lineage: str, plan: RemovalPlan) -> list[GcItem]:
    """One item per commit; an object is counted for the oldest commit that lists it."""
    remaining = dict(plan.objects)
    items = []
    for commit in plan.commits:
        sizes = [remaining.pop(name) for name in listed_objects([commit]) if name in remaining]
        items.append(GcItem(lineage, "commit", commit.sequence, len(sizes), sum(sizes), commit.checkpoint))
    return items + _items(lineage, "data of removed commits", remaining)


def _orphan_items(lineage: str, orphans: Orphans) -> list[GcItem]:
    """One item per folder, and one for the agents' records."""
    folders: dict[str, dict[str, int]] = {}
    for name, size in orphans.data.items():
        folders.setdefault(name.partition("/")[0], {})[name] = size
    items = [item for name in sorted(folders) for item in _items(lineage, "uncommitted", folders[name], name)]
    return items + _items(lineage, "records of agents", orphans.records, PRIVATE)


def _items(lineage: str, what: str, objects: dict[str, int], name: str = "-") -> list[GcItem]:
    return [GcItem(lineage, what, None, len(objects), sum(objects.values()), name)] if objects else []


def _print_results(results: Sequence[GcResult], request: GcOptions, output: str) -> None:
    items = [item for result in results for item in result.items]
    if output == "json":
        print_json([_result_json(result, request) for result in results])
    elif items:
        print_table(HEADERS, [_row(item) for item in items], right=HEADERS[2:5])
    print_problems([problem for result in results for problem in result.problems])
    total = format_bytes(sum(item.bytes for item in items))
    if not items:
        print_message("nothing to remove")
    elif request.delete:
        print_message(f"removed: {total}")
    else:
        print_message(f"{total} would be removed; nothing has been changed: add --yes to remove it")


def _row(item: GcItem) -> tuple[str, ...]:
    sequence = "-" if item.sequence is None else str(item.sequence)
    return item.lineage, item.what, sequence, f"{item.objects:,}", format_bytes(item.bytes), item.name


def _result_json(result: GcResult, request: GcOptions) -> dict[str, Any]:
    problems = [str(problem) for problem in result.problems]
    return {"lineage": result.lineage, "removed": request.delete, "items": result.items, "problems": problems}
