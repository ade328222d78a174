"""Lists a source and its destination, and compares them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from podferry.contract.dataset_reference import Reference
from podferry.contract.destination.sync_record import SyncedArchive
from podferry.contract.errors import Changed, FerryError, InvalidSpec, NotFound, Problem, Refused
from podferry.contract.manifest import Entry, first_names
from podferry.contract.pack import INDEX
from podferry.contract.spec import Shard, Unpack
from podferry.sidecar.archive.unpack_rules import Archive, archives_of
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.selection import SelectedDataset, Selection, open_selected
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.sync.plan import Records, Removal, SyncPlan, plan_removals, plan_sync, proven
from podferry.sidecar.sync.preconditions import unfit_names
from podferry.sidecar.sync.record_log import RecordLog
from podferry.sidecar.sync.share import take_share
from podferry.storage.listing.by_directory import list_entries
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import Store, StoreConfig

STATS = 16
"""Requests in flight that ask the source for files that it did not list."""


class SyncOptions(msgspec.Struct, frozen=True):
    """What is synced, and how.

    Attributes:
        selection: Globs over the names of the source; what they leave out is left alone at the destination.
        delete: Remove files at the destination that the source no longer has.
        unpack: Write the members of archives instead of the archives.
        size_only: Files of equal size count as equal.
        share: Which files this process moves, if several sync together; None for all.
        settings: Attempts, and the length of a range of a large file.
    """

    selection: Selection = Selection()
    delete: bool = False
    unpack: bool = False
    size_only: bool = False
    share: Shard | None = None
    settings: PrefetchSettings = PrefetchSettings()


class Comparison(msgspec.Struct, frozen=True):
    """A source, its destination, and what differs.

    Attributes:
        dataset: The source, open: close its store when done.
        target: The destination.
        there: What the destination has, by name.
        records: What is recorded there.
        log: Takes what is moved.
        plan: What differs.
    """

    dataset: SelectedDataset
    target: Store
    there: Mapping[str, Entry]
    records: Records
    log: RecordLog
    plan: SyncPlan

    @property
    def listed(self) -> set[str]:
        """Names of the source's files, as far as they are selected."""
        return {entry.name for entry in self.dataset.manifest.entries}

    def proven(self, touched: Collection[str]) -> Records:
        """What is recorded or found to be equal, but for names that the sync has written or removed."""
        written = frozenset(touched)
        left = {name: entry for name, entry in self.there.items() if name not in written}
        return proven(self.plan, left, self.records)

    def removals(self, members: Mapping[str, SyncedArchive], selection: Selection) -> tuple[Removal, ...]:
        """Files to remove, if the members of all archives are known."""
        plain = (move.entry.name for move in self.plan.moves)
        kept = (entry.name for entry in self.plan.kept)
        unpacked = (member.name for archive in members.values() for member in archive.members)
        globs = (selection.include, selection.exclude)
        return plan_removals(
            (*plain, *kept, *unpacked, *self.plan.others),
            self.listed,
            self.there.values(),
            self.records,
            globs,
        )

    async def check_gone(self, removals: Iterable[Removal], attempts: int) -> None:
        """Ask the source for each file that it did not list: a listing that was cut must not delete anything.

        Raises:
            Changed: It has one of them.
        """
        if self.dataset.stored_manifest is not None:  # it was not listed
            return
        found: list[str] = []

        async def look(origin: str) -> None:
            try:
                await retry(attempts, lambda: self.dataset.store.stat(origin))
            except NotFound:
                return
            found.append(origin)

        origins = {removal.origin for removal in removals}
        # What is listed and is not wanted is an archive to unpack, or the index of one.
        await for_each_limited(sorted(origins - self.listed), look, STATS)
        if found:
            what = f"the listing of {self.dataset.store.uri} leaves out files that are there"
            raise Changed.of(what, first_names(sorted(found)), "Nothing has been removed. Run it again")


async def compare(source: Reference, target: Store, config: StoreConfig, options: SyncOptions) -> Comparison:
    """List both places and plan what to move.

    Raises:
        EmptyDataset: The source is empty, does not exist, or nothing of it is selected.
        Changed: It is frozen and has changed.
        InvalidSpec, Refused: Removals are asked for a source of one file; names do not fit.
    """
    attempts = options.settings.attempts
    dataset = await retry(
        attempts, lambda: open_selected(source.uri, options.selection, config, Unpack.NEVER)
    )
    try:
        check_frozen(source, dataset.frozen)
        entries = dataset.manifest.entries
        InvalidSpec.raise_any(_delete_problems(source, dataset, options))
        Refused.raise_any(unfit_names((entry.name for entry in entries), target.uri))
        log = RecordLog(target, str(source.uri), attempts)
        # Before the list: what another process has recorded is there by then, and its record can be merged.
        records = await log.load()
        there = {entry.name: entry for entry in await retry(attempts, lambda: list_entries(target))}
        files, archives = _divide(entries, unpack=options.unpack)
        plan = plan_sync(files, archives, there, records, size_only=options.size_only)
        plan = take_share(plan, options.share)
    except FerryError:
        await dataset.store.close()
        raise
    return Comparison(dataset, target, there, records, log, plan)


def _delete_problems(source: Reference, dataset: SelectedDataset, options: SyncOptions) -> Iterator[Problem]:
    single = dataset.stored_manifest is None and dataset.store.uri != source.uri
    if options.delete and single:
        remedy = "Sync its directory, or leave --delete out"
        yield Problem("the source is one file: its directory says nothing of others", str(source.uri), remedy)


def _divide(entries: tuple[Entry, ...], *, unpack: bool) -> tuple[list[Entry], tuple[Archive, ...]]:
    """The files to move as they are, and the archives to unpack; of an unpacked pack not its index."""
    archives = archives_of(entries, Unpack.ALWAYS if unpack else Unpack.NEVER)
    unpacked = {archive.name for archive in archives}
    index = {INDEX} if unpack else set()
    return [entry for entry in entries if entry.name not in unpacked | index], archives
