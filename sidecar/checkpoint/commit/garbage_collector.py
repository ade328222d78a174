"""Removes old checkpoints at the destination, never what anybody still needs.

Others may be at work on the same lineage: a pod that drains while the next one starts, the other ranks, a
person with `podferry checkpoints gc`. No store deletes on a condition, so a removal goes in steps, each of
which may be the last (a kill) or come late (a stall):

    1. plan, and write the plan down (`contract/tombstones.py`)
    2. plan again: what is still listed and still goes is settled, in writing too
    3. delete the commits, all of them before any data
    4. look again: at the parts of ranks, then at the commits; data that neither names is deleted
    5. take the record away

Why no listed commit can lose data by it, given what an uploader does:

* It refers only to what the commit just before its own lists, and the number of its own is created
  conditionally: if another has taken it, it looks again from the start. The newest commit never goes, so
  whatever step 4 misses was listed by a commit that step 4 has seen.
* A rank writes its part, then makes sure that a commit which is still listed has what the part refers to.
  Step 3 comes before step 4, so either the rank misses the commit or step 4 sees the part. Parts come first
  in step 4: those that a commit has replaced since are seen as that commit.
* It looks for commits of the same content, then at the records (`being_removed`), and writes under no name in
  them. If it finds neither, no removal of these names is under way: a removal settles only what was listed
  after its record was there, so that the uploader would have found the one or the other.

A kill leaves commits without a flaw, and at worst data that none of them lists, in a record: the next remover
deletes what was settled. It leaves the record, since a stalled remover looks like a dead one.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog

from podferry.contract.commit import Commit, commit_name
from podferry.contract.errors import NotFound, Unavailable
from podferry.contract.rank_parts import PARTS, decode_part
from podferry.contract.tombstones import (
    FORMAT,
    RemovalPlan,
    Tombstone,
    encode_tombstone,
    listed_objects,
    plan_removal,
    tombstone_name,
)
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.tombstones import read_tombstones
from podferry.sidecar.runtime.concurrency import for_each_limited

log = structlog.get_logger(__name__)

CONCURRENT_CHECKS = 10
"""How often a lineage is listed anew where commits go between the list and their reading."""
CONCURRENT_READS = 8


class GarbageCollector:
    """Removes from one lineage. What it has read of commits it keeps: they never change."""

    def __init__(self, reader: CommitReader) -> None:
        self.reader = reader
        self.lineage = reader.lineage
        self._store = reader.store
        self._name = uuid.uuid4().hex
        self._known: dict[int, Commit] = {}
        self._whole: set[int] = set()
        self._settled: dict[str, int] = {}

    def learn(self, commit: Commit) -> None:
        """Take a commit as read."""
        self._known[commit.sequence] = commit

    async def commits(self) -> list[Commit]:
        """All commits of the lineage, oldest first: every one that was there when the call came.

        Raises:
            Corrupt, FormatTooNew: One cannot be read, and may list anything.
        """
        for _ in range(CONCURRENT_CHECKS):
            numbers = await self.reader.sequences()
            try:
                await self._read(number for number in numbers if number not in self._known)
            except NotFound:
                # One that was removed meanwhile may have had its successor created since.
                continue
            self._known = {number: self._known[number] for number in numbers}
            return list(self._known.values())
        measured = f"after {CONCURRENT_CHECKS} looks"
        raise Unavailable.of(f"commits of {self.lineage} are listed that are not there", measured)

    async def plan(self, keep: int, protected: Collection[str] = ()) -> RemovalPlan:
        """What `remove` would do now; raises as `commits` does."""
        commits = await self.commits()
        whole = await self._newest_whole(commits, keep) if len(commits) > keep else set()
        return plan_removal(commits, whole, keep, protected)

    async def remove(self, keep: int, protected: Collection[str] = ()) -> RemovalPlan:
        """Remove all but the newest `keep` whole commits and what they list; what has gone.

        Args:
            keep: From 1.
            protected: Names or folders of checkpoints that stay besides.

        Raises:
            Corrupt, FormatTooNew: A record cannot be read and may name anything: nothing more is removed.
            FerryError: The store's.
        """
        return await self.carry_out(lambda: self.plan(keep, protected), parts=True)

    async def carry_out(self, look: Callable[[], Awaitable[RemovalPlan]], *, parts: bool) -> RemovalPlan:
        """Remove what `look` plans, in the steps above; what has gone.

        Args:
            look: Makes the plan from what is there at the time.
            parts: Whether the parts of ranks protect what they name.
        """
        first = await look()
        if not first.commits and not first.objects and not self._settled:
            return first
        await self._write_down(first.objects)
        plan = (await look()).within(first)
        self._settled |= plan.objects
        await self._write_down({})
        await self._store.delete(commit_name(commit.sequence) for commit in plan.commits)
        gone = await self._sweep(self._settled, parts=parts)
        # Forgotten first: if the answer to this is lost, others may write under these names again.
        self._settled = {}
        await self._store.delete([tombstone_name(self._name)])
        return RemovalPlan(plan.commits, gone)

    async def unfinished(self) -> dict[str, int]:
        """What removers that were killed have left: names that nothing lists, and their bytes."""
        records = await read_tombstones(self._store)
        settled = {name: size for record in records for name, size in record.settled.items()}
        if not settled:
            return {}
        referenced = await self.referenced(parts=True)
        left = {name: size for name, size in settled.items() if name not in referenced}
        return {name: size for name, size in left.items() if await self._stands(name)}

    async def finish(self) -> dict[str, int]:
        """Remove what removers that were killed have left; what has gone."""
        return await self._sweep(await self.unfinished(), parts=True)

    async def referenced(self, *, parts: bool) -> set[str]:
        """The data that commits list; with `parts` also what parts of ranks name."""
        held = await self._held() if parts else set()
        return held.union(listed_objects(await self.commits()))

    async def _sweep(self, objects: dict[str, int], *, parts: bool) -> dict[str, int]:
        if not objects:
            return {}
        referenced = await self.referenced(parts=parts)
        gone = {name: size for name, size in objects.items() if name not in referenced}
        await self._store.delete(gone)
        return gone

    async def _write_down(self, planned: dict[str, int]) -> None:
        removing = Tombstone(FORMAT, self._name, planned, self._settled)
        await self._store.write(tombstone_name(self._name), encode_tombstone(removing))

    async def _newest_whole(self, commits: list[Commit], keep: int) -> set[int]:
        """The newest `keep` whole ones; the very newest is looked at each time, the others once."""
        found: set[int] = set()
        for commit in reversed(commits):
            if len(found) == keep:
                break
            trusted = bool(found) and commit.sequence in self._whole
            if trusted or not await self.reader.flaws(commit):
                found.add(commit.sequence)
        self._whole = found
        return found

    async def _read(self, numbers: Iterable[int]) -> None:
        async def one(number: int) -> None:
            self._known[number] = await self.reader.read(number)

        await for_each_limited(tuple(numbers), one, CONCURRENT_READS)

    async def _held(self) -> set[str]:
        """Every object that a rank's part names."""
        found: set[str] = set()
        async for entry in self._store.entries(PARTS):
            try:
                part = await self._store.load(entry.name, decode_part)
            except NotFound:
                continue  # replaced by its commit, which is looked at after this
            found.update(file.object for file in part.files)
        return found

    async def _stands(self, name: str) -> bool:
        try:
            await self._store.stat(name)
        except NotFound:
            return False
        return True
