"""What uploads that were given up have left at the destination, and its removal.

An upload under way looks just like one that was given up: its data is there and no commit lists it. So this
is for a lineage at which no agent is at work. An agent announces itself before it does anything else, and
keeps clear of what is being removed (`podferry.sidecar.checkpoint.commit.garbage_collector`): one that
starts meanwhile loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from podferry.contract.agent_notes import DrainPhase, decode_note, note_name
from podferry.contract.commit import COMMITS, LATEST, PRIVATE
from podferry.contract.errors import Corrupt, NotFound, Problem, Refused
from podferry.contract.rank_parts import PARTS, RANKS, member_of
from podferry.contract.tombstones import RemovalPlan
from podferry.sidecar.checkpoint.commit.agent_identity import AGENTS_PREFIX
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

WRITER = f"{PRIVATE}/writer.json"
KEPT = (f"{COMMITS}/", LATEST, WRITER)
"""Records that stay: the truth, its copy, and who was here last."""


class _Announced(msgspec.Struct, frozen=True):
    writer: str
    since: str = "an unknown time"


@dataclass(frozen=True, slots=True)
class Orphans:
    """What nobody needs where no agent is at work.

    Attributes:
        data: Names relative to the lineage that no commit lists, and their bytes.
        records: Parts, announcements, notes, records of removals: names and bytes.
    """

    data: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)


def plan_orphans(names: Mapping[str, int], referenced: Collection[str]) -> Orphans:
    """Tell what is left over.

    Args:
        names: All that lies below the lineage, relative to it, and its bytes.
        referenced: The data that commits list.
    """
    inner = _lineages_within(names)
    own = {name: size for name, size in names.items() if not _below(name, inner)}
    private = {name: size for name, size in own.items() if name.startswith(f"{PRIVATE}/")}
    data = {name: size for name, size in own.items() if name not in private and name not in referenced}
    records = {name: size for name, size in private.items() if not name.startswith(KEPT)}
    return Orphans(data, records)


async def find_orphans(remover: GarbageCollector) -> Orphans:
    """What is left over in a lineage; raises as `GarbageCollector.commits` does."""
    store = remover.reader.store
    names = {entry.name: entry.size async for entry in store.entries()}
    # After the list: what was committed meanwhile counts as committed.
    found = plan_orphans(names, await remover.referenced(parts=False))
    last = await _read(store, WRITER)
    if last is not None:
        # With it goes the knowledge that nobody is at work.
        found.records.pop(note_name(last.writer), None)
    return found


async def remove_orphans(remover: GarbageCollector, *, force: bool) -> Orphans:
    """Remove them; what has gone. Data goes first, since records explain it.

    Args:
        remover: Of the lineage.
        force: The caller knows that no agent is at work there, whatever lies there.

    Raises:
        Refused: One may be.
        Corrupt, FormatTooNew: A commit cannot be read, and may list anything.
    """
    store = remover.reader.store

    async def calm() -> None:
        if not force:
            Refused.raise_any(await active_agents(store))

    async def look() -> RemovalPlan:
        await calm()
        return RemovalPlan(objects=(await find_orphans(remover)).data)

    records = (await find_orphans(remover)).records
    gone = await remover.carry_out(look, parts=False)
    await calm()
    # Parts first: none may outlive the announcements that it was written under.
    ordered = sorted(records, key=lambda name: not name.startswith(f"{PARTS}/"))
    await store.delete(ordered)
    return Orphans(gone.objects, records)


async def active_agents(store: LineageStore) -> list[Problem]:
    """Agents that have announced themselves there and have not said that they ended."""
    announced = {}
    if note := await _read(store, WRITER):
        announced[note.writer] = f"since {note.since}"
    for name in await store.children(AGENTS_PREFIX):
        announced.setdefault(name.removesuffix(".json"), "which has committed")
    for name in await store.children(RANKS):
        if member := member_of(name):
            announced.setdefault(member[2], f"rank {member[0]}")
    remedy = "See that no pod or process trains there, then add --force"
    return [
        Problem(
            f"an agent may be at work on {store.lineage}",
            f"{writer}, {how}, has left no note that it ended",
            remedy,
        )
        for writer, how in announced.items()
        if not await _ended(store, writer)
    ]


async def _read(store: LineageStore, name: str) -> _Announced | None:
    try:
        return msgspec.json.decode(await store.read(name), type=_Announced)
    except NotFound:
        return None
    except msgspec.MsgspecError as error:
        raise Corrupt.of(f"{store.uri_of(name)} is no announcement", str(error)) from error


async def _ended(store: LineageStore, writer: str) -> bool:
    try:
        return (await store.load(note_name(writer), decode_note)).phase is DrainPhase.ENDED
    except NotFound:
        return False


def _lineages_within(names: Iterable[str]) -> set[str]:
    """Lineages that lie in folders of this one: what is theirs is not ours."""
    return {name.partition(f"/{PRIVATE}/")[0] for name in names if f"/{PRIVATE}/" in name}


def _below(name: str, folders: Collection[str]) -> bool:
    return any(name.startswith(f"{folder}/") for folder in folders)
