"""Syncs a destination with a dataset: compares, moves, removes, records.

    1. compare    list both places; a plan of what differs
       make way   in a local directory, remove what is in the way of a new name, if removals are asked for
    2. move       whole files, in parallel; each is recorded once it is there
    3. remove     what the source no longer has, if asked; only after everything was moved
    4. merge      one record of all that is equal

Several processes may share a sync (`share`): each moves its own files, the first one removes and merges.

A sync that was killed is repeated: what it has moved is recorded, but for the last seconds. If the source
changes meanwhile, files are not mixed: the next round lists it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from podferry.contract.dataset_reference import Reference
from podferry.contract.dataset_selection import selection_of
from podferry.contract.destination.sync_record import SyncedArchive
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.uri import Uri
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.sync.comparison import Comparison, SyncOptions, compare
from podferry.sidecar.sync.empty_directories import remove_empty_directories
from podferry.sidecar.sync.plan import Removal, SyncPlan, in_the_way
from podferry.sidecar.sync.preconditions import place_problems
from podferry.sidecar.sync.share import in_share, is_leader
from podferry.sidecar.sync.transfer import OnProgress, Transfer
from podferry.storage.factory import open_store, server_copy_between
from podferry.storage.server_copy import ServerCopy
from podferry.storage.store import Store, StoreConfig

ROUNDS = 3
"""Listings of a source that changes while it is synced; what changes still is reported."""


@dataclass(slots=True)
class SyncResult:
    """What a sync did.

    Attributes:
        moved: Names of files that were moved, members of archives among them.
        bytes: Bytes read from the source for them.
        kept: Number of files that were equal.
        removed: Names of files that were removed.
        problems: Why files could not be moved; empty if the destination is complete.
    """

    moved: list[str] = field(default_factory=list)
    bytes: int = 0
    kept: int = 0
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncPreview:
    """What a sync would do now.

    The members of archives that it would unpack are unknown: those of the last recorded version count as
    wanted.
    """

    plan: SyncPlan
    removals: tuple[Removal, ...]


class Sync:
    """Syncs one destination.

    Args:
        source: A dataset: a prefix, an object, a manifest; frozen or not.
        destination: A prefix, or a directory.
        source_config, target_config: How to reach them.
        options: What is synced; a frozen source has its own selection.
        on_progress: See `OnProgress`.
    """

    def __init__(
        self,
        source: Reference,
        destination: Uri,
        source_config: StoreConfig,
        target_config: StoreConfig,
        options: SyncOptions = SyncOptions(),  # noqa: B008
        on_progress: OnProgress = lambda done, total: None,
    ) -> None:
        problems = place_problems(_without_links(source.uri), _without_links(destination))
        InvalidSpec.raise_any([*problems, *_share_problems(options)])
        given = options.selection
        selection = Selection(*selection_of(source, given.include, given.exclude))
        self._source, self._destination = source, destination
        self._options = msgspec.structs.replace(options, selection=selection)
        self._source_config, self._target_config = source_config, target_config
        self._on_progress = on_progress
        self._attempts = options.settings.attempts
        self._result = SyncResult()

    async def preview(self) -> SyncPreview:
        """Compare, and change nothing; raises as `compare`."""
        target = open_store(self._destination, self._target_config)
        try:
            found = await compare(self._source, target, self._source_config, self._options)
            try:
                archives = _former_archives(found) | _kept_archives(found)
                removals = self._removals(found, archives) if is_leader(self._options.share) else ()
                return SyncPreview(found.plan, removals)
            finally:
                await found.dataset.store.close()
        finally:
            await target.close()

    async def run(self) -> SyncResult:
        """Move what differs.

        Raises:
            EmptyDataset, Changed, InvalidSpec, Refused: Nothing was moved: see `compare`.
            FerryError: A store refused, or did not respond after all attempts. What was moved is recorded.
        """
        target = open_store(self._destination, self._target_config)
        try:
            for left in reversed(range(ROUNDS)):
                if await self._round(target, last=not left):
                    break
        finally:
            await target.close()
        return self._result

    async def _round(self, target: Store, *, last: bool) -> bool:
        """One listing; returns whether it was enough."""
        found = await compare(self._source, target, self._source_config, self._options)
        try:
            gone = await self._make_way(found)
            transfer = await self._transfer(found)
            if transfer.changed and not last:
                return False
            kept = found.plan.kept_names - set(self._result.moved)
            self._result.kept = len(in_share(kept, self._options.share))
            self._result.problems = transfer.problems()
            if is_leader(self._options.share) and not self._result.problems:
                await self._finish(found, transfer, gone)
            return True
        finally:
            await found.dataset.store.close()

    async def _make_way(self, found: Comparison) -> tuple[str, ...]:
        """Remove what prevents a local directory from holding a new name, if removals are asked for.

        Returns the names. Not next to archives that are yet to be unpacked, whose members are unknown.
        """
        if self._destination.scheme != "file" or found.plan.unpacks:
            return ()
        new = [move.entry.name for move in found.plan.moves]
        removals = in_the_way(self._removals(found, _kept_archives(found)), new)
        await found.check_gone(removals, self._attempts)
        names = await self._remove(found, removals)
        if names:
            await asyncio.to_thread(remove_empty_directories, Path("/", self._destination.key), new)
        return names

    async def _remove(self, found: Comparison, removals: Iterable[Removal]) -> tuple[str, ...]:
        names = tuple(removal.name for removal in removals)
        await retry(self._attempts, lambda: found.target.delete(names))
        self._result.removed = tuple(dict.fromkeys((*self._result.removed, *names)))
        return names

    async def _transfer(self, found: Comparison) -> Transfer:
        source, configs = found.dataset.store.uri, (self._source_config, self._target_config)
        async with _server_copy(source, self._destination, configs) as server_copy:
            transfer = Transfer(found, self._options.settings, self._on_progress, server_copy)
            try:
                await transfer.run()
            finally:
                # An untagged file moves in every round.
                self._result.moved = list(dict.fromkeys((*self._result.moved, *transfer.moved)))
                self._result.bytes += transfer.bytes
        return transfer

    async def _finish(self, found: Comparison, transfer: Transfer, gone: Collection[str]) -> None:
        archives = _kept_archives(found) | transfer.archives
        removals = [one for one in self._removals(found, archives) if one.name not in gone]
        await found.check_gone(removals, self._attempts)
        names = (*gone, *await self._remove(found, removals))
        if transfer.moved or names or not found.log.is_one_record:
            proven = found.proven((*names, *transfer.moved))
            await found.log.merge(
                (*proven.files, *transfer.files), (*proven.archives, *transfer.archives.values())
            )

    def _removals(self, found: Comparison, archives: dict[str, SyncedArchive]) -> tuple[Removal, ...]:
        return found.removals(archives, self._options.selection) if self._options.delete else ()


def _share_problems(options: SyncOptions) -> Iterator[Problem]:
    if options.share is not None and options.unpack:
        remedy = "Leave out one of --shard and --unpack"
        yield Problem("archives are not unpacked by several processes at once", "", remedy)


def _without_links(place: Uri) -> Uri:
    """A local place without symbolic links: `--unpack --delete` into the source would remove its archives."""
    if place.scheme != "file":
        return place
    return msgspec.structs.replace(place, key=str(Path("/", place.key).resolve()).strip("/"))


@asynccontextmanager
async def _server_copy(
    source: Uri, target: Uri, configs: tuple[StoreConfig, StoreConfig]
) -> AsyncIterator[ServerCopy | None]:
    """As `server_copy_between`, but not for directories: a root that is missing must not be created."""
    if source.scheme == "file":
        yield None
        return
    async with server_copy_between(source, target, configs) as server_copy:
        yield server_copy


def _former_archives(found: Comparison) -> dict[str, SyncedArchive]:
    """What is recorded of other versions of the archives that will be unpacked."""
    unpacks = {archive.name for archive in found.plan.unpacks}
    return {one.archive.name: one for one in found.records.archives if one.archive.name in unpacks}


def _kept_archives(found: Comparison) -> dict[str, SyncedArchive]:
    return {one.archive.name: one for one in found.plan.kept_archives}
