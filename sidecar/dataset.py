"""The dataset's part of an agent: list, check, size, fetch."""

from __future__ import annotations

import time

import structlog

from podferry.contract.api import DatasetStatus
from podferry.contract.errors import Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import DatasetSpec
from podferry.sidecar.access import store_config
from podferry.sidecar.capacity import measure
from podferry.sidecar.config import AgentConfig
from podferry.sidecar.plan import PrefetchPlan, plan_prefetch, refuse_unless_fits
from podferry.sidecar.prefetch import Prefetch
from podferry.sidecar.stage import Stage
from podferry.sidecar.state import State
from podferry.storage.lane import EngineLane
from podferry.storage.listing import Dataset, check_frozen, open_dataset

log = structlog.get_logger(__name__)


class DatasetWork:
    """Brings one dataset."""

    def __init__(self, spec: DatasetSpec, config: AgentConfig, state: State) -> None:
        assert config.places.dataset is not None  # noqa: S101 - a spec with a dataset has a place for it
        self._spec = spec
        self._config = config
        self._stage = Stage(config.places.dataset, config.places.claim or config.places.control)
        self._state = state
        self._dataset: Dataset | None = None
        self._plan: PrefetchPlan | None = None
        self.status = DatasetStatus(uri=spec.reference, path=spec.path)
        state.status.dataset = self.status

    async def plan(self) -> None:
        """List, compare with the reference, size. No byte of the data has moved on return.

        Raises:
            EmptyDataset, Changed, Refused and the store's errors: Why it cannot be brought.
        """
        if not self._stage.root.is_dir():
            raise Refused.of(f"the dataset path {self._stage.root} is no directory", remedy="Create it")
        reference = self._spec.parsed
        if self._dataset is None:
            access = store_config(self._spec.access, self._config.dataset_secret)
            self._dataset = await open_dataset(reference.uri, access)
        manifest = self._dataset.manifest
        check_frozen(reference, manifest)
        kept = self._stage.claim(manifest)
        self._plan = plan_prefetch(manifest, kept, self._config.settings.prefetch)
        try:
            refuse_unless_fits(self._plan, measure(self._stage.root), in_pod=self._config.places.in_pod)
        except Refused:
            self._stage.finish()
            raise
        self.status.digest = manifest.digest
        self.status.files, self.status.bytes = manifest.files, manifest.bytes
        self.status.files_kept = self.status.files_done = len(kept)
        self.status.bytes_done = sum(entry.size for entry in self._plan.kept)
        self._state.changed()

    async def fetch(self) -> None:
        """Fill the stage as planned.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Prefetch.run`.
        """
        assert self._plan is not None and self._dataset is not None  # noqa: PT018, S101 - `plan` comes first
        lane = EngineLane(self._dataset.store)
        started = time.monotonic()
        await Prefetch(self._plan, lane, self._stage, self._config.settings.prefetch, self._advance).run()
        self.status.seconds = time.monotonic() - started
        log.info(
            "dataset whole",
            files=self.status.files,
            bytes=self.status.bytes,
            seconds=round(self.status.seconds, 3),
        )

    def _advance(self, files: int, count: int) -> None:
        self.status.files_done += files
        self.status.bytes_done += count
        self._state.changed()

    async def close(self) -> None:
        """Give back the connections and the stage."""
        self._stage.close()
        if self._dataset is not None:
            await self._dataset.store.close()

    def summary(self) -> str:
        """One line for people."""
        status = self.status
        kept = f", {status.files_kept:,} of them kept" if status.files_kept else ""
        size = f"{status.files:,} files, {format_bytes(status.bytes)}"
        return f"dataset: {size} in {status.seconds:.1f} s at {status.path}{kept}"
