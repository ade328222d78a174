"""`podferry checkpoints gc`: removes old checkpoints, and what was never committed, at a destination."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from podferry.cli import output as printing
from podferry.cli.lineage_args import selected
from podferry.cli.options import access_options, config_of, output_option, place, run
from podferry.contract.commit import PRIVATE
from podferry.contract.errors import InvalidSpec, NotFound, PermanentError, Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.suggest import did_you_mean
from podferry.contract.tombstones import RemovalPlan, listed_objects
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.orphans import Orphans, active_agents, find_orphans, remove_orphans
from podferry.storage.store import Store, StoreConfig

HEADS = ("lineage", "what", "sequence", "objects", "size", "name")
FIGURES = ("sequence", "objects", "size")


@dataclass(frozen=True, slots=True)
class GcOptions:
    """What is to go.

    Attributes:
        keep: How many whole commits stay, None for all.
        uncommitted: Also what no commit lists.
        force: The caller knows that no agent is at work.
        really: Not only tell.
    """

    keep: int | None
    uncommitted: bool
    force: bool
    really: bool


@dataclass(frozen=True, slots=True)
class GcItem:
    """One line of what goes; the bytes are those that come free."""

    lineage: str
    what: str
    sequence: int | None
    objects: int
    bytes: int
    name: str


@dataclass(slots=True)
class Swept:
    """What goes of one lineage, and why no more does."""

    lineage: str
    items: list[GcItem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@click.command("gc")
@click.argument("uri")
@click.argument("lineages", nargs=-1, metavar="[LINEAGE]...")
@click.option("--keep", type=click.IntRange(min=1), help="How many whole commits of each lineage stay.")
@click.option("--uncommitted", is_flag=True, help="Remove what no commit lists, where no agent is at work.")
@click.option("--force", is_flag=True, help="With --uncommitted: nobody is at work there, and you know it.")
@click.option("--yes/--dry-run", "really", default=False, help="Do it; else only tell, the default.")
@output_option
@access_options
def command(uri: str, lineages: tuple[str, ...], output: str, **options: Any) -> int:
    """Tell which checkpoints would go, and remove them with --yes.

    Oldest commits go first, each before its data; the newest whole one stays in any case, and so does data
    that a commit which stays refers to. Training may go on meanwhile. Interrupted, it can be run again.
    """
    wish = GcOptions(*(options.pop(name) for name in ("keep", "uncommitted", "force", "really")))
    if wish.keep is None and not wish.uncommitted:
        raise click.UsageError("say what may go: --keep N, --uncommitted, or both")
    if wish.force and not wish.uncommitted:
        raise click.UsageError("--force goes with --uncommitted: nothing else needs it")
    found = run(_sweep_all(place(uri), lineages, wish, config_of(**options)))
    _show(found, wish, output)
    return 1 if any(swept.problems for swept in found) else 0


async def _sweep_all(uri: Uri, words: Sequence[str], wish: GcOptions, config: StoreConfig) -> list[Swept]:
    async with _chosen(uri, words, config, uncommitted=wish.uncommitted) as readers:
        return [await _sweep(GarbageCollector(reader), wish) for reader in readers]


async def _sweep(remover: GarbageCollector, wish: GcOptions) -> Swept:
    """One lineage; what is wrong there does not keep the others."""
    swept = Swept(remover.lineage)
    left: dict[str, int] = {}
    try:
        if wish.keep is not None:
            plan = await (remover.remove if wish.really else remover.plan)(wish.keep)
            swept.items += _removed(remover.lineage, plan)
            left = await (remover.finish if wish.really else remover.unfinished)()
            swept.items += _item(remover.lineage, "left by a removal that was killed", left)
        if wish.uncommitted:
            await _sweep_uncommitted(remover, wish, swept, left)
    except PermanentError as error:
        swept.problems += error.problems
    return swept


async def _sweep_uncommitted(
    remover: GarbageCollector, wish: GcOptions, swept: Swept, told: Collection[str]
) -> None:
    if wish.really:
        swept.items += _left_over(remover.lineage, await remove_orphans(remover, force=wish.force))
        return
    found = await find_orphans(remover)
    data = {name: size for name, size in found.data.items() if name not in told}
    swept.items += _left_over(remover.lineage, Orphans(data, found.records))
    if not wish.force:
        swept.problems += await active_agents(remover.reader.store)


@asynccontextmanager
async def _chosen(
    uri: Uri, words: Sequence[str], config: StoreConfig, *, uncommitted: bool
) -> AsyncIterator[list[CommitReader]]:
    """The lineages that are named, else all; those without a commit count where `uncommitted` is wanted."""
    async with selected(uri, (), config) as chosen:
        destination, known = chosen.destination, list(chosen.lineages)
        if str(destination.uri) == str(uri):
            known = await _begun(destination) if uncommitted else known
        elif words:
            where = f"{uri} is a lineage itself"
            raise InvalidSpec.of(f"unexpected: {' '.join(words)}", where, "Leave it out")
        names = [word.strip("/") for word in words] or known
        where = f"{len(known)} below {destination.uri}"
        NotFound.raise_any(
            Problem(f"there is no lineage {name!r}", where, did_you_mean(name, known))
            for name in names
            if name not in known
        )
        yield [CommitReader(LineageStore(destination, name)) for name in dict.fromkeys(names)]


async def _begun(destination: Store) -> list[str]:
    """Lineages in which an agent has been at work, whether or not it has committed."""
    folders = [name[:-1] for name in await destination.children() if name.endswith("/")]
    return [name for name in folders if f"{PRIVATE}/" in await destination.children(name)]


def _removed(lineage: str, removal: RemovalPlan) -> list[GcItem]:
    """A commit a line; an object counts for the oldest that lists it."""
    left = dict(removal.objects)
    items = []
    for commit in removal.going:
        own = [left.pop(name) for name in listed_objects([commit]) if name in left]
        items.append(GcItem(lineage, "commit", commit.sequence, len(own), sum(own), commit.checkpoint))
    return items + _item(lineage, "data of commits that are gone", left)


def _left_over(lineage: str, left: Orphans) -> list[GcItem]:
    """A folder a line, and one for the records."""
    folders: dict[str, dict[str, int]] = {}
    for name, size in left.data.items():
        folders.setdefault(name.partition("/")[0], {})[name] = size
    found = [item for name in sorted(folders) for item in _item(lineage, "uncommitted", folders[name], name)]
    return found + _item(lineage, "records of agents", left.records, PRIVATE)


def _item(lineage: str, what: str, objects: dict[str, int], name: str = "-") -> list[GcItem]:
    return [GcItem(lineage, what, None, len(objects), sum(objects.values()), name)] if objects else []


def _show(found: Sequence[Swept], wish: GcOptions, output: str) -> None:
    items = [item for swept in found for item in swept.items]
    if output == "json":
        printing.show_json([_as_json(swept, wish) for swept in found])
    elif items:
        printing.show_table(HEADS, [_row(item) for item in items], right=FIGURES)
    printing.complain([problem for swept in found for problem in swept.problems])
    total = format_bytes(sum(item.bytes for item in items))
    if not items:
        printing.say("nothing to remove")
    elif wish.really:
        printing.say(f"removed: {total}")
    else:
        printing.say(f"{total} would go; nothing has been changed: add --yes to remove it")


def _row(item: GcItem) -> tuple[str, ...]:
    sequence = "-" if item.sequence is None else str(item.sequence)
    return item.lineage, item.what, sequence, f"{item.objects:,}", format_bytes(item.bytes), item.name


def _as_json(swept: Swept, wish: GcOptions) -> dict[str, Any]:
    problems = [str(problem) for problem in swept.problems]
    return {"lineage": swept.lineage, "removed": wish.really, "items": swept.items, "problems": problems}
