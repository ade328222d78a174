"""All datasets of one agent: planned together, since they share memory, and brought one after another."""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.errors import PermanentError, Refused
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.sidecar.dataset.fit_check import PlannedDataset, fit_problems
from podferry.sidecar.runtime.concurrency import merge_errors
from podferry.sidecar.state.agent_state import AgentState

log = structlog.get_logger(__name__)


class DatasetsJob:
    """Brings the datasets of a spec.

    One at a time: each run may have as many bytes in flight as the memory sum has, and one run alone fills
    the link.
    """

    def __init__(self, config: AgentConfig, state: AgentState) -> None:
        directories, secrets = config.directories, config.dataset_secrets
        self._in_pod = config.in_pod
        self._works = [
            DatasetJob(
                spec,
                DatasetPlacement(
                    directories.datasets[spec.name],
                    directories.ownership_of(spec.name),
                    secrets.get(spec.name),
                    in_pod=config.in_pod,
                    alone=len(config.spec.datasets) == 1,
                ),
                config.tuning.prefetch,
                state.notify,
            )
            for spec in config.spec.datasets
        ]
        state.status.datasets = [work.status for work in self._works]

    async def plan(self) -> None:
        """List, check and size all of them. No byte of the data has moved on return. Can be repeated.

        Raises:
            PermanentError, TemporaryError: Why they cannot be brought, all of it at once.
        """
        results = await asyncio.gather(*(work.plan() for work in self._works), return_exceptions=True)
        placed = [result for result in results if isinstance(result, PlannedDataset)]
        unfit = fit_problems(placed, in_pod=self._in_pod)
        error = merge_errors([*results, *([Refused(*unfit)] if unfit else [])])
        if error is None:
            return
        if isinstance(error, PermanentError):
            # Else the plan is tried again, and what has come in part is gone on with.
            for work in self._works:
                work.abandon()
        raise error

    def refresh(self) -> None:
        """Bring what is told up to date."""
        for work in self._works:
            work.report.refresh()

    async def fetch(self) -> None:
        """Fill the stages as planned.

        Raises:
            Changed, NotFound, Corrupt, TemporaryError, Refused: See `Prefetch.run`.
        """
        for work in self._works:
            await work.fetch()
            status = work.status
            log.info(
                "dataset whole",
                name=status.name,
                files=status.files,
                bytes=status.bytes,
                seconds=round(status.seconds, 3),
            )

    async def close(self) -> None:
        """Give back the connections and the stages."""
        for work in self._works:
            await work.close()

    def summary(self) -> str:
        """A line for people, each dataset."""
        return "\n".join(work.summary() for work in self._works)
