"""Removes old checkpoints at the destination, never data that anyone still needs.

Others may use the lineage at the same time: a pod that drains while the next one starts, the other ranks, a
person who runs `podferry checkpoints gc`. No store deletes conditionally, so a removal has several steps. Any
step may be the last one (the collector is killed) or happen late (it stalls):

    1. plan, and write the plan to a tombstone (`contract/destination/tombstones.py`)
    2. plan again: what is still listed and still due is settled, in the tombstone too
    3. delete the commits, all of them before any data
    4. read the parts of ranks, then the commits; delete the settled data that neither refers to, then the
       confirmations of commits that do not exist any more
    5. delete the tombstone

Why no listed commit can lose data, given what an uploader does:

* An uploader refers only to data of the commit just before its own, and it creates its own number
  conditionally: if the number is taken, it looks again from the start. The newest commit is never removed. So
  whatever step 4 misses was listed by a commit that step 4 has seen.
* A rank writes its part, then makes sure that a commit that is still listed has what the part refers to.
  Step 3 comes before step 4, so either the rank misses the commit or step 4 sees the part. Step 4 reads parts
  first: a part that a commit has replaced since is seen as that commit.
* An uploader looks for commits of the same content, then at the tombstones (`names_being_removed`), and
  writes under none of their names. If it finds neither, no removal of these names is running: a removal
  settles only what was listed after its tombstone existed, so the uploader would have found the commit or the
  tombstone.
* A file that the store has copied is like an uploaded one: it is in the checkpoint's own folder, whose names
  the uploader has looked for in the same way. If its source is removed meanwhile, the copy fails or is whole.

After a kill, all commits are intact. At worst, data remains that no commit lists but a tombstone does: the
next collector deletes what was settled. It leaves the tombstone, since a stalled collector looks like a dead
one.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection

import structlog

from podferry.contract.destination.commit import Commit, commit_name
from podferry.contract.destination.rank_parts import PARTS, decode_part
from podferry.contract.destination.tombstones import (
    FORMAT,
    RemovalPlan,
    Tombstone,
    adds_series,
    decides,
    listed_objects,
    plan_removal,
    tombstone_name,
)
from podferry.contract.errors import NotFound
from podferry.contract.versioned_json import encode_document
from podferry.sidecar.checkpoint.commit.commit_index import CommitIndex
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.tombstone_reader import read_tombstones

log = structlog.get_logger(__name__)


class GarbageCollector:
    """Removes data of one lineage. `is_foreign` says which commits are neither removed nor counted."""

    def __init__(
        self, reader: CommitReader, is_foreign: Callable[[Commit], bool] = lambda commit: False
    ) -> None:
        self.store, self._reader, self._is_foreign = reader.store, reader, is_foreign
        self._id = uuid.uuid4().hex
        self._index = CommitIndex(reader)
        self._newest: Commit | None = None
        self._complete: set[int] = set()
        self._settled: dict[str, int] = {}

    def add(self, commit: Commit) -> None:
        """Take over a commit that the caller has read or created."""
        self._index.add(commit)
        self._newest = commit

    async def plan(self, keep: int, protected: Collection[str] = (), most: int | None = None) -> RemovalPlan:
        """What `remove` would remove now, oldest first. Reads nothing if there are at most `keep` commits.

        Raises `Corrupt` or `FormatTooNew` if a commit cannot be read: it may list anything.
        """
        if not await self._index.refresh(more_than=keep):
            return RemovalPlan()
        due = (await self._due(keep, protected))[:most]
        removed = [commit for one in due if (commit := await self._entire(one.sequence)) is not None]
        numbers = {commit.sequence for commit in removed}
        return RemovalPlan(tuple(removed), self._index.unlisted(listed_objects(removed), numbers))

    async def remove(
        self, keep: int, protected: Collection[str] = (), most: int | None = None
    ) -> RemovalPlan:
        """Remove all but the newest `keep` complete commits of each kind, and the newest sure of each series.

        Returns what was removed.

        Args:
            keep: From 1.
            protected: Names or folders of checkpoints that are kept, too.
            most: Remove only so many, the oldest: the files of all of them are held in memory.

        Raises:
            Corrupt, FormatTooNew: A record cannot be read and may name anything: nothing more is removed.
            FerryError: The store's.
        """
        return await self.run(lambda: self.plan(keep, protected, most), parts=True)

    async def run(self, plan: Callable[[], Awaitable[RemovalPlan]], *, parts: bool) -> RemovalPlan:
        """Run a removal in the steps above; returns what was removed.

        Args:
            plan: Plans from what exists at the time of the call.
            parts: Whether the parts of ranks protect the objects that they name.
        """
        first = await plan()
        if not first.commits and not first.objects and not self._settled:
            return first
        await self._write_tombstone(first.objects)
        settled = (await plan()).within(first)
        self._settled |= settled.objects
        await self._write_tombstone({})
        await self.store.delete(commit_name(commit.sequence) for commit in settled.commits)
        removed = await self._delete_unreferenced(self._settled, parts=parts)
        removed_numbers = {commit.sequence for commit in settled.commits}
        await self.store.delete(self._index.stale_confirmations(removed_numbers))
        # Cleared first: if the answer to the delete is lost, others may already write under these names.
        self._settled = {}
        await self.store.delete([tombstone_name(self._id)])
        return RemovalPlan(settled.commits, removed)

    async def unfinished(self) -> dict[str, int]:
        """Objects that killed collectors have left and nothing refers to: names and bytes."""
        tombstones = await read_tombstones(self.store)
        settled = {name: size for tombstone in tombstones for name, size in tombstone.settled.items()}
        left = await self.unreferenced(settled, parts=True)
        return {name: size for name, size in left.items() if await self._exists(name)}

    async def finish(self) -> dict[str, int]:
        """Remove what `unfinished` finds; returns what was removed."""
        return await self._delete_unreferenced(await self.unfinished(), parts=True)

    async def unreferenced(self, objects: dict[str, int], *, parts: bool) -> dict[str, int]:
        """Those of `objects` that no commit lists now; with `parts` no part of a rank names them either."""
        if not objects:
            return {}
        named = await self._named_by_parts() if parts else set()
        await self._index.refresh()
        left = self._index.unlisted(objects)
        return {name: size for name, size in left.items() if name not in named}

    async def _delete_unreferenced(self, objects: dict[str, int], *, parts: bool) -> dict[str, int]:
        if unreferenced := await self.unreferenced(objects, parts=parts):
            await self.store.delete(unreferenced)
        return unreferenced

    async def _write_tombstone(self, planned: dict[str, int]) -> None:
        tombstone = Tombstone(FORMAT, self._id, planned, self._settled)
        await self.store.write(tombstone_name(self._id), encode_document(tombstone))

    async def _due(self, keep: int, protected: Collection[str]) -> list[Commit]:
        """The commits to remove, oldest first; metrics push out no checkpoint that training resumes from."""
        due, complete = list[Commit](), set[int]()
        for same in await self._index.by_kind():
            commits = [one for one in same if not self._is_foreign(one)]
            newest = await self._newest_complete(commits, keep)
            due += plan_removal(commits, newest, keep, protected)
            complete |= newest
        self._complete = complete
        return sorted(due, key=lambda commit: commit.sequence)

    async def _newest_complete(self, commits: list[Commit], keep: int) -> set[int]:
        """The newest `keep` complete commits of one kind and the newest complete sure one of each series.

        The newest of all is checked each time, the others once.
        """
        found: list[Commit] = []
        enough, series = False, frozenset[str]()
        for commit in reversed(commits):
            if enough and not adds_series(commit, series):
                continue
            checked = bool(found) and commit.sequence in self._complete
            if checked or await self._is_complete(commit.sequence):
                found.append(commit)
                enough, series = decides(found, keep) if len(found) >= keep else (False, series)
        return {commit.sequence for commit in found}

    async def _is_complete(self, number: int) -> bool:
        commit = await self._entire(number)
        return commit is not None and not await self._reader.missing_objects(commit)

    async def _entire(self, number: int) -> Commit | None:
        """A commit with its files; None if it was removed meanwhile."""
        if self._newest is not None and self._newest.sequence == number:
            return self._newest
        try:
            return await self._reader.read(number)
        except NotFound:
            return None

    async def _named_by_parts(self) -> set[str]:
        found: set[str] = set()
        async for entry in self.store.entries(PARTS):
            part = await self.store.find(entry.name, decode_part)
            if part is not None:  # else its commit has replaced it, and commits are read after this
                found.update(file.object for file in part.files)
        return found

    async def _exists(self, name: str) -> bool:
        try:
            await self.store.stat(name)
        except NotFound:
            return False
        return True
