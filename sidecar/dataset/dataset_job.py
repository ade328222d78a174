"""Stages one dataset: list, select, claim the staging directory, plan, fetch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from podferry.contract.dataset_volume import ListedSize, dataset_volume_of, unknown_size
from podferry.contract.errors import Changed, Corrupt, NotFound, Refused
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.pack import is_pack
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import DatasetSpec, Medium
from podferry.contract.status import DatasetStatus
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.dataset.fit_check import SizedPlan
from podferry.sidecar.dataset.listing_overlap import ListingOverlap, make_overlap
from podferry.sidecar.dataset.materialize import Materializer
from podferry.sidecar.dataset.selection import (
    ListDataset,
    SelectedDataset,
    Selection,
    open_selected,
    shard_manifest,
    with_changes_since_frozen,
)
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import count_partial_bytes
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import measure
from podferry.sidecar.state.progress_log import ProgressLog
from podferry.storage.listing.dataset import check_frozen, open_listing
from podferry.storage.store import Store, StoreConfig

if TYPE_CHECKING:
    from podferry.storage.holder.store import HolderStore


class DatasetJob:
    """Stages one dataset. Imports little: `podferry dataset get` is this and a progress bar.

    1. `manifest`, if the caller wants to know what there is before anything is claimed.
    2. `plan`, again while the store does not answer.
    3. `PlannedDataset.fetch`, or `abandon` if a dataset is refused.
    4. `close`, in any case.
    """

    def __init__(
        self,
        spec: DatasetSpec,
        placement: DatasetPlacement,
        settings: PrefetchSettings,
        notify: Callable[[], None] = lambda: None,
        limit: RateLimit | None = None,
    ) -> None:
        self.spec, self.settings, self.limit = spec, settings, limit
        self.status = DatasetStatus(
            spec.reference, spec.path, name=spec.name, size_limit=placement.size_limit
        )
        self.progress = ProgressLog(self.status, placement.directory)
        self.staging = StagingDir(placement.directory, placement.ownership, file_mode=spec.file_mode)
        self._placement, self._notify = placement, notify
        self._dataset: SelectedDataset | None = None
        self._overlap: ListingOverlap | None = None
        self._claimed = False
        self._answered_at = float("-inf")

    @property
    def answered(self) -> bool:
        """Whether the store has listed a file: it can be reached, even if the listing breaks off."""
        return self._answered_at > float("-inf")

    async def manifest(self) -> Manifest:
        """The files of the selection, of which `plan` takes a shard; raises as `plan`."""
        return (await self._selected()).manifest

    async def _selected(self) -> SelectedDataset:
        dataset = self._dataset = self._dataset or await self._open()
        check_frozen(self.spec.parsed, dataset.frozen)
        return dataset

    async def plan(self) -> PlannedDataset:
        """List, select, compare with the reference, claim the staging directory.

        Transfers no data, except what `podferry.sidecar.dataset.listing_overlap` fetches if it surely fits.

        Raises:
            EmptyDataset, Changed, Refused and the store's errors: Why it cannot be staged.
        """
        directory = self._placement.directory
        if not directory.is_dir():
            raise Refused.of(f"the dataset path {directory} is not a directory", remedy="Create it")
        dataset = await self._selected()
        shard = shard_manifest(dataset.manifest, self.spec.shard)
        materializer = Materializer(
            shard, dataset.pack, self.spec.unpack, self.staging, self._placement.ownership
        )
        kept = materializer.claim()
        early = await self._overlap.adopt(shard.entries) if self._overlap else frozenset()
        present = kept | early
        plan = count_partial_bytes(plan_fetch(shard, present, self.settings), self.staging)
        self._claimed = True
        capacity = measure(directory)
        self.status.digest = dataset.frozen.digest
        self.status.files, self.status.bytes = shard.files, shard.bytes
        self.status.files_kept = len(kept - early)
        self.status.in_memory = capacity.in_memory
        self.progress.planned(len(present), plan.partial_bytes + sum(entry.size for entry in plan.kept))
        self._notify()
        option = "" if self._placement.size_limit is None else "--size"
        limit, names = self._size_limit(), self._placement.names
        sized = SizedPlan(plan, capacity, self.spec.name, limit, option, names=names)
        return PlannedDataset(self, sized, dataset, materializer, self._overlap)

    async def _open(self) -> SelectedDataset:
        """List and select; fetch small files meanwhile if everything that may be listed fits."""
        spec, selection = self.spec, Selection(self.spec.include, self.spec.exclude)
        if self._placement.holder is None:
            self._overlap = self._overlap or self._make_overlap(selection)
        try:
            dataset = await open_selected(
                spec.parsed.uri,
                selection,
                self.access(),
                spec.unpack,
                self._on_entry,
                self._lister(selection),
            )
        except BaseException:  # including a cancellation: no download may outlive its listing
            if self._overlap is not None:
                await self._overlap.finish(seconds=0.0)
            raise
        if self._overlap is not None:
            await self._overlap.finish()
        return dataset

    def _on_entry(self, store: Store, entry: Entry) -> None:
        self._answered_at = time.monotonic()
        if self._overlap is not None and self._placement.holder is None:
            self._overlap.on_entry(store, entry)

    def _lister(self, selection: Selection) -> ListDataset:
        if self._placement.holder is None:
            return open_listing
        # Imported here: `podferry dataset get` must start fast.
        from podferry.sidecar.dataset.near_listing import listing_near  # noqa: PLC0415

        def on_held(store: HolderStore, manifest: Manifest) -> None:
            if is_pack(manifest.entries, self.spec.unpack):
                return
            self._overlap = self._overlap or self._make_overlap(selection, ListedSize.of(manifest))
            if self._overlap is not None:
                self._overlap.copy(FetchSource(store, checksum_of=store.checksum_of), manifest.entries)

        return listing_near(
            self._placement.holder, self.spec.parsed, selection, on_held, lambda: self._answered_at
        )

    def _make_overlap(self, selection: Selection, listed: ListedSize | None = None) -> ListingOverlap | None:
        if not self._placement.alone:
            return None
        return make_overlap(self.spec, selection, self.staging, self.settings, self.progress, listed)

    def access(self) -> StoreConfig:
        """How to reach the store."""
        return store_config(self.spec.access, self._placement.secret, self._placement.guards)

    def _size_limit(self) -> int | None:
        """The volume's size if the file system does not enforce it: on disk, in a pod, or as it is given."""
        if self._placement.size_limit is not None:
            return self._placement.size_limit
        on_disk = self._placement.in_pod and self.spec.medium is Medium.DISK
        return dataset_volume_of(self.spec).bytes if on_disk and not any(unknown_size(self.spec)) else None

    def abandon(self) -> None:
        """Remove what was fetched: the plan is refused. Leaves another agent's staging directory alone."""
        self._discard_overlap()
        if self._claimed:
            self.staging.remove_partials()

    def _discard_overlap(self) -> None:
        if self._overlap is not None:
            self._overlap.discard()
            self._overlap = None

    async def close(self) -> None:
        """Release the connections and the staging directory; remove early files unless the fetch began."""
        self._discard_overlap()
        self.staging.close()
        if self._dataset is not None:
            await self._dataset.store.close()

    def summary(self) -> str:
        """One line for the user."""
        status = self.status
        label = f"dataset {status.name}" if status.name else "dataset"
        shard = f", part {self.spec.shard}" if self.spec.shard else ""
        kept = f", {status.files_kept:,} of them kept" if status.files_kept else ""
        size = f"{status.files:,} file{'s' * (status.files != 1)}, {format_bytes(status.bytes)}"
        place = status.path if status.in_memory else f"{status.path} on disk"
        return f"{label}: {size}{shard} in {status.seconds:.1f} s at {place}{kept}"


class PlannedDataset(msgspec.Struct, frozen=True):
    """A dataset whose staging directory is claimed; `sized` is for the fit check of all datasets together."""

    job: DatasetJob
    sized: SizedPlan
    _dataset: SelectedDataset
    _materializer: Materializer
    _overlap: ListingOverlap | None

    @property
    def manifest(self) -> Manifest:
        """The selected files, before any shard."""
        return self._dataset.manifest

    @property
    def source(self) -> FetchSource:
        """Where the files come from."""
        return msgspec.structs.replace(self._dataset.source, limit=self.job.limit)

    async def fetch(self, *, log_progress: bool = True) -> None:
        """Fill the staging directory.

        Args:
            log_progress: Log a line every few seconds.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Fetcher.run`.
        """
        if self._overlap is not None:
            self._overlap.keep()
        job, store, manifest = self.job, self._dataset.store, self._dataset.stored_manifest
        counters = job.progress.counters
        context = FetchContext(store, job.staging, job.settings, counters.advance)
        try:
            async with job.progress.reporting(log_progress=log_progress):
                rest = await self._materializer.unpack(self.sized.plan, context)
                await Fetcher(rest, self.source, job.staging, job.settings, counters=counters).run()
        except (Changed, NotFound, Corrupt) as error:
            if manifest is None:
                raise
            raise await with_changes_since_frozen(error, manifest, job.access()) from error
