"""All datasets of one agent: planned together, since they share memory, and fetched one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from podferry.contract.errors import PermanentError, Refused
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.sidecar.dataset.fit_check import fit_problems
from podferry.sidecar.runtime.concurrency import merge_errors
from podferry.sidecar.state.agent_state import AgentState

log = structlog.get_logger(__name__)


class DatasetsJob:
    """Stages the datasets of a spec.

    1. `plan`, again while a store does not answer.
    2. `PlannedDatasets.fetch`.
    3. `close`, in any case.
    """

    def __init__(self, config: AgentConfig, state: AgentState) -> None:
        directories, secrets = config.directories, config.dataset_secrets
        self._in_pod = config.in_pod
        self._jobs = [
            DatasetJob(
                spec,
                DatasetPlacement(
                    directories.datasets[spec.name],
                    directories.ownership_of(spec.name),
                    secrets.get(spec.name),
                    in_pod=config.in_pod,
                    alone=len(config.spec.datasets) == 1,
                    guards=config.guards,
                    holder=config.holders.get(spec.name),
                ),
                config.tuning.prefetch,
                state.notify,
            )
            for spec in config.spec.datasets
        ]
        state.status.datasets = [job.status for job in self._jobs]

    async def plan(self) -> PlannedDatasets:
        """List, check and size all of them. Transfers no data.

        Raises `PermanentError` or `TemporaryError` with all reasons why they cannot be staged.
        """
        results = await asyncio.gather(*(job.plan() for job in self._jobs), return_exceptions=True)
        planned = [result for result in results if isinstance(result, PlannedDataset)]
        problems = fit_problems([one.sized for one in planned], in_pod=self._in_pod)
        error = merge_errors([*results, *([Refused(*problems)] if problems else [])])
        if error is None:
            return PlannedDatasets(planned)
        if isinstance(error, PermanentError):
            # Otherwise the plan is retried and partial files are resumed.
            for job in self._jobs:
                job.abandon()
        raise error

    @property
    def answered(self) -> bool:
        """Whether each store has listed a file."""
        return all(job.answered for job in self._jobs)

    def refresh(self) -> None:
        """Update the status."""
        for job in self._jobs:
            job.progress.refresh()

    async def close(self) -> None:
        """Release the connections and the staging directories."""
        for job in self._jobs:
            await job.close()

    def summary(self) -> str:
        """One line per dataset, for the user."""
        return "\n".join(job.summary() for job in self._jobs)


class PlannedDatasets(NamedTuple):
    """Datasets that fit together."""

    datasets: Sequence[PlannedDataset]

    async def fetch(self) -> None:
        """Fill the staging directories in turn: each fetch fills the link and may use all bytes in flight."""
        for dataset in self.datasets:
            await dataset.fetch()
            status = dataset.job.status
            counts, seconds = {"files": status.files, "bytes": status.bytes}, round(status.seconds, 3)
            log.info("dataset complete", name=status.name, **counts, seconds=seconds)
