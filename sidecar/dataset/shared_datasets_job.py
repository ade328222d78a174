"""The datasets that holders share with a pod: nothing is fetched, the agent waits for them and locks them."""

from __future__ import annotations

import asyncio
import time

import structlog

from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.shared_stage import Handover
from podferry.contract.spec import MountedDataset
from podferry.contract.status import DatasetStatus
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.dataset.shared_set import SharedSet
from podferry.sidecar.state.agent_state import AgentState

log = structlog.get_logger(__name__)


class SharedDatasetsJob:
    """Waits for the shared datasets of a spec.

    1. `plan`, again while no holder responds.
    2. `run`, in parallel with the training.
    3. `close`.
    """

    def __init__(self, config: AgentConfig, state: AgentState) -> None:
        self._sets = [_Shared(one, config, state) for one in config.spec.shared]
        state.status.datasets += [one.status for one in self._sets]

    async def plan(self) -> None:
        """Wait until all of them are complete, and lock them; raises what `SharedSet.open` raises."""
        await asyncio.gather(*(one.open() for one in self._sets))

    async def run(self) -> None:
        """Get the locks that are missing: after a restart of the worker, or of a holder that was gone."""
        await asyncio.gather(*(one.shared.keep() for one in self._sets))

    async def close(self) -> None:
        """Release the locks."""
        for one in self._sets:
            one.shared.close()

    def summary(self) -> str:
        """One line for each dataset, for the user."""
        return "\n".join(one.summary() for one in self._sets)


class _Shared:
    def __init__(self, spec: MountedDataset, config: AgentConfig, state: AgentState) -> None:
        self.shared = SharedSet(config.shared[spec.name], spec.origin)
        self.status = DatasetStatus(uri=str(spec.origin.uri), path=spec.path, name=spec.name, in_memory=True)
        self._notify = state.notify

    async def open(self) -> None:
        started = time.monotonic()
        self._show(message := await self.shared.open(self._show))
        self.status.digest, self.status.seconds = message.digest, time.monotonic() - started
        self.status.files = self.status.files_done = message.files
        log.info("dataset complete", name=self.status.name, files=message.files, bytes=message.bytes)

    def _show(self, message: Handover) -> None:
        self.status.bytes, self.status.bytes_done = message.bytes, message.bytes_done
        self._notify()

    def summary(self) -> str:
        """One line for the user."""
        status = self.status
        label = f"dataset {status.name}" if status.name else "dataset"
        size = f"{count_of(status.files, 'file')}, {format_bytes(status.bytes)}"
        return f"{label}: {size} shared at {status.path}"
