"""One dataset's way into its stage: list, select, check, claim, plan, fetch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.dataset_volume import unknown_size
from podferry.contract.errors import Changed, Corrupt, NotFound, Refused
from podferry.contract.memory import dataset_volume_of
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import DatasetSpec, Medium, Unpack
from podferry.contract.status import DatasetStatus
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.fit_check import PlannedDataset, surely_fits
from podferry.sidecar.dataset.listing_overlap import ListingOverlap, OverlapBudget
from podferry.sidecar.dataset.materialize import Materializer
from podferry.sidecar.dataset.selection import (
    SelectedDataset,
    Selection,
    open_selected,
    part_of,
    since_frozen,
)
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import continued
from podferry.sidecar.fetch.plan import FetchPlan, plan_fetch
from podferry.sidecar.fetch.range_reader import FetchContext
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.staging.volume_capacity import measure
from podferry.sidecar.state.progress_log import ProgressLog
from podferry.storage.listing.by_directory import ignore_entry
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig


@dataclass(frozen=True, slots=True)
class DatasetPlacement:
    """Where one dataset is brought, and with whose credentials.

    Attributes:
        stage: The directory that it fills.
        claim: The directory that says which dataset fills the stage.
        secret: A mounted Secret; None for the environment.
        in_pod: Whether the kubelet watches over the volume.
        alone: Whether no other dataset shares its room.
    """

    stage: Path
    claim: Path
    secret: Path | None = None
    in_pod: bool = False
    alone: bool = True


class DatasetJob:
    """Brings one dataset. Imports little: `podferry dataset get` is nothing else."""

    def __init__(
        self,
        spec: DatasetSpec,
        place: DatasetPlacement,
        settings: PrefetchSettings,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.spec = spec
        self.status = DatasetStatus(uri=spec.reference, path=spec.path, name=spec.name)
        self.report = ProgressLog(self.status, place.stage)
        self._place, self._root = place, place.stage
        self._settings = settings
        self._changed = changed
        self._stage = StagingDir(place.stage, place.claim, file_mode=spec.file_mode)
        self._dataset: SelectedDataset | None = None
        self._contents: Materializer | None = None
        self._plan: FetchPlan | None = None
        self._ahead: ListingOverlap | None = None
        self._came_ahead: frozenset[str] = frozenset()

    async def plan(self) -> PlannedDataset:
        """List, select, compare with the reference, claim the stage.

        No byte of the data has moved on return, but for what `podferry.sidecar.dataset.listing_overlap`
        fetches where its room is sure.

        Returns:
            What is to come, and the room that there is: `podferry.sidecar.dataset.fit_check` judges all
            datasets together.

        Raises:
            EmptyDataset, Changed, Refused and the store's errors: Why it cannot be brought.
        """
        if not self._root.is_dir():
            raise Refused.of(f"the dataset path {self._root} is no directory", remedy="Create it")
        opened = self._dataset = self._dataset or await self._open()
        named, pack = opened.named, opened.pack
        check_frozen(self.spec.parsed, named)
        part = part_of(opened.manifest, self.spec.shard)
        self._contents = Materializer(part, pack, self.spec.unpack, self._place.claim)
        kept = self._contents.claim(self._stage)
        if self._ahead is not None:
            self._came_ahead |= await self._ahead.adopt(part.entries)
            self._ahead = None
        there = kept | self._came_ahead
        self._plan = continued(plan_fetch(part, there, self._settings), self._stage)
        self.status.digest = named.digest
        self.status.files, self.status.bytes = part.files, part.bytes
        self.status.files_kept = len(kept - self._came_ahead)
        self.report.planned(len(there), self._plan.partial + sum(entry.size for entry in self._plan.kept))
        capacity = measure(self._root)
        self.status.in_memory = capacity.in_memory
        self._changed()
        return PlannedDataset(self._plan, capacity, self.spec.name, self._limit())

    async def _open(self) -> SelectedDataset:
        """List and select; where there is room for whatever is listed, files come already."""
        selection = Selection(self.spec.include, self.spec.exclude)
        self._ahead = self._ahead or self._begin_ahead(selection)
        seen = self._ahead.listed if self._ahead else ignore_entry
        try:
            opened = await open_selected(
                self.spec.parsed.uri, selection, self._access(), self.spec.unpack, seen
            )
        except BaseException:
            if self._ahead is not None:
                await self._ahead.end(patience=0.0)
            raise
        if self._ahead is not None:
            await self._ahead.end()
        return opened

    def _begin_ahead(self, selection: Selection) -> ListingOverlap | None:
        spec = self.spec
        if not self._place.alone or spec.shard or spec.unpack is Unpack.ALWAYS or any(unknown_size(spec)):
            return None
        volume, capacity = dataset_volume_of(spec), measure(self._root)
        if not surely_fits(volume, capacity, self._settings.buffer_bytes):
            return None
        place = self._stage.ahead()
        if place is None:
            return None
        allowed = OverlapBudget(selection, volume.bytes, capacity.page_bytes)
        return ListingOverlap(self._stage, place, allowed, self._settings, self.report)

    def _access(self) -> StoreConfig:
        return store_config(self.spec.access, self._place.secret)

    def _limit(self) -> int | None:
        """The volume's limit where the kubelet alone watches it: on a disk, in a pod."""
        watched = self._place.in_pod and self.spec.medium is Medium.DISK and not any(unknown_size(self.spec))
        return dataset_volume_of(self.spec).bytes if watched else None

    async def fetch(self, *, lines: bool = True) -> None:
        """Fill the stage as planned.

        Args:
            lines: Log a line every few seconds.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Fetcher.run`.
        """
        assert self._plan and self._dataset and self._contents  # noqa: PT018, S101 - `plan` comes first
        self._came_ahead = frozenset()  # from here on it is as good as what comes now
        store, stage, settings = self._dataset.store, self._stage, self._settings
        source, meter = FetchSource(store), self.report.counters
        way = FetchContext(store, stage, settings, self._advance)
        try:
            async with self.report.reporting(log_progress=lines):
                rest = await self._contents.unpack(self._plan, way)
                await Fetcher(rest, source, stage, settings, meter=meter).run()
        except (Changed, NotFound, Corrupt) as error:
            if self._dataset.source is None:
                raise
            raise await since_frozen(error, self._dataset.source, self._access()) from error

    def _advance(self, files: int, count: int) -> None:
        self.report.counters.files += files
        self.report.counters.bytes += count

    def abandon(self) -> None:
        """Nothing is to be fetched after all: remove what has come. Another agent's stage stays."""
        self._drop_ahead()
        if self._plan is not None:
            self._stage.finish()

    def _drop_ahead(self) -> None:
        self._stage.trim(self._came_ahead)
        if self._ahead is not None:  # nothing is claimed yet, so nothing else can be aside
            self._stage.finish()
        self._ahead, self._came_ahead = None, frozenset()

    async def close(self) -> None:
        """Give back the connections and the stage; what came ahead of a fetch that never began goes."""
        self._drop_ahead()
        self._stage.close()
        if self._dataset is not None:
            await self._dataset.store.close()

    def summary(self) -> str:
        """One line for people."""
        status = self.status
        called = f"dataset {status.name}" if status.name else "dataset"
        shard = f", part {self.spec.shard}" if self.spec.shard else ""
        kept = f", {status.files_kept:,} of them kept" if status.files_kept else ""
        size = f"{status.files:,} file{'s' * (status.files != 1)}, {format_bytes(status.bytes)}"
        place = status.path if status.in_memory else f"{status.path} on disk"
        return f"{called}: {size}{shard} in {status.seconds:.1f} s at {place}{kept}"
