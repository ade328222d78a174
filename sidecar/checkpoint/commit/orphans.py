"""Finds and removes what abandoned uploads have left at the destination.

An upload in progress looks just like an abandoned one: its data exists and no commit lists it. So this is
only for a lineage that no agent uses. An agent announces itself before it does anything else, and does not
write to names that are being removed (`podferry.sidecar.checkpoint.commit.garbage_collector`): one that
starts meanwhile loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from podferry.contract.destination.agent_notes import DrainPhase, decode_note, note_name
from podferry.contract.destination.commit import COMMITS, LATEST, commit_name
from podferry.contract.destination.confidence import CONFIRMED, confirmed_part
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.rank_parts import PARTS, RANKS, member_of
from podferry.contract.destination.tombstones import RemovalPlan
from podferry.contract.errors import Problem, Refused
from podferry.sidecar.checkpoint.commit.agent_identity import AGENTS_PREFIX, ANNOUNCEMENT, decode_announcement
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore

KEPT = (f"{COMMITS}/", LATEST, ANNOUNCEMENT)
"""Records that are never removed: the commits, the copy of the newest, and the last agent. Confirmations stay
as long as their commits."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Objects, by name with their bytes, that are not needed if no agent uses the lineage.

    `data` is listed by no commit; `records` are parts, announcements, notes and tombstones.
    """

    data: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)


def plan_orphans(names: Mapping[str, int], referenced: Collection[str]) -> Orphans:
    """The orphans among all objects of a lineage; `referenced` are the names that commits list."""
    # Lineages in folders of this one: their objects are not this one's.
    nested = {name.partition(f"/{PRIVATE}/")[0] for name in names if f"/{PRIVATE}/" in name}
    below = tuple(f"{folder}/" for folder in nested)
    own = {name: size for name, size in names.items() if not name.startswith(below)}
    private = {name: size for name, size in own.items() if name.startswith(f"{PRIVATE}/")}
    data = {name: size for name, size in own.items() if name not in private and name not in referenced}
    records = {name: size for name, size in private.items() if not _is_kept(name, private)}
    return Orphans(data, records)


def _is_kept(name: str, private: Collection[str]) -> bool:
    """Whether a record stays: one of those that always do, or the confirmation of a commit that exists."""
    folder, _, last = name.rpartition("/")
    part = confirmed_part(last) if folder == CONFIRMED else None
    return name.startswith(KEPT) or (part is not None and commit_name(part[0]) in private)


async def find_orphans(collector: GarbageCollector) -> Orphans:
    """The orphans of a lineage; raises as `GarbageCollector.plan` does."""
    store = collector.store
    names = {entry.name: entry.size async for entry in store.entries()}
    # Read after the listing: what was committed in between counts as committed.
    unlisted = await collector.unreferenced(names, parts=False)
    orphans = plan_orphans(names, names.keys() - unlisted.keys())
    if last := await store.find(ANNOUNCEMENT, decode_announcement):
        orphans.records.pop(note_name(last.agent_id), None)  # it shows that the last agent has ended
    return orphans


async def remove_orphans(collector: GarbageCollector, *, force: bool) -> Orphans:
    """Remove the orphans; returns what was removed. Data goes first, since records explain it.

    Args:
        collector: The lineage's.
        force: The caller knows that no agent uses the lineage, whatever its records say.

    Raises:
        Refused: An agent may use it.
        Corrupt, FormatTooNew: A commit cannot be read, and may list anything.
    """

    async def refuse_if_active() -> None:
        if not force:
            Refused.raise_any(await active_agents(collector.store))

    async def plan() -> RemovalPlan:
        await refuse_if_active()
        return RemovalPlan(objects=(await find_orphans(collector)).data)

    records = (await find_orphans(collector)).records
    removed = await collector.run(plan, parts=False)
    await refuse_if_active()
    # Parts first: none may outlive the announcements that it was written under.
    await collector.store.delete(sorted(records, key=lambda name: not name.startswith(f"{PARTS}/")))
    return Orphans(removed.objects, records)


async def active_agents(store: LineageStore) -> list[Problem]:
    """Agents that have announced themselves and left no note that they ended."""
    announced = {}
    if last := await store.find(ANNOUNCEMENT, decode_announcement):
        announced[last.agent_id] = f"since {last.since}"
    for name in await store.children(AGENTS_PREFIX):
        announced.setdefault(name.removesuffix(".json"), "which has started there")
    for name in await store.children(RANKS):
        if member := member_of(name):
            announced.setdefault(member[2], f"rank {member[0]}")
    return [
        Problem(
            f"an agent may be using {store.lineage}",
            f"{agent_id}, {source}, has left no note that it ended",
            "Make sure that no pod or process trains there, then add --force",
        )
        for agent_id, source in announced.items()
        if not await _has_ended(store, agent_id)
    ]


async def _has_ended(store: LineageStore, agent_id: str) -> bool:
    note = await store.find(note_name(agent_id), decode_note)
    return note is not None and note.phase is DrainPhase.ENDED
