"""The worker: plan, restore, prefetch, open the gate, ferry checkpoints, drain. One walk, top to bottom."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import stamina
import structlog

from podferry.contract.api import (
    CHECKPOINTS_VARIABLE,
    DATASET_VARIABLE,
    LONGEST_WAIT,
    RESTORED_VARIABLE,
    Gate,
    Stage,
    Status,
)
from podferry.contract.errors import FerryError, PermanentError, Refused, TemporaryError
from podferry.sidecar.checkpoints import CheckpointWork
from podferry.sidecar.config import AgentConfig
from podferry.sidecar.dataset import DatasetWork
from podferry.sidecar.ferrying import CheckpointFerry
from podferry.sidecar.journal import Journal
from podferry.sidecar.server import Api, serve
from podferry.sidecar.state import State

log = structlog.get_logger(__name__)

Step = Callable[[], Coroutine[Any, Any, None]]


class Agent:
    """One life of a worker."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._journal = Journal(config.places.control)
        self._journal.record.starts += 1
        self._journal.save()
        self.state = State(Status(starts=self._journal.record.starts, started_at=time.time()))
        self.api = Api(self.state)
        self._ferry: CheckpointFerry | None = None

    async def work(self) -> None:
        """Everything up to the drain; returns only where there is nothing (more) to do."""
        spec = self._config.spec
        try:
            dataset = DatasetWork(spec.dataset, self._config, self.state) if spec.dataset else None
            checkpoints = (
                CheckpointWork(spec.checkpoints, self._config, self._journal, self.state)
                if spec.checkpoints
                else None
            )
            # Once the gate has opened, data is neither fetched nor trimmed again: the trainer is reading it.
            if self._journal.record.gate is None:
                await self._prepare(dataset, checkpoints)
        except FerryError as error:
            log.error("refused", problems=[str(problem) for problem in error.problems])
            self.state.refuse(error)
            return
        if checkpoints is not None:
            self._ferry = checkpoints.ferry()
            self.api.flush = lambda seconds, final: self._flush(seconds, final=final)
        self._open_gate(dataset, checkpoints)
        if self._ferry is not None:
            await self._ferry.run()

    async def _prepare(self, dataset: DatasetWork | None, checkpoints: CheckpointWork | None) -> None:
        works = [work for work in (dataset, checkpoints) if work is not None]
        await self._plan_all([work.plan for work in works])
        if checkpoints is not None:
            self.state.enter(Stage.RESTORING)
            await self._patiently(checkpoints.restore)
        if dataset is not None:
            self.state.enter(Stage.PREFETCHING)
            await dataset.fetch()

    async def _plan_all(self, steps: list[Step]) -> None:
        """Carry out all plans and raise what is wrong with any of them, all at once."""
        results = await asyncio.gather(*map(self._patiently, steps), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, FerryError):
                raise result
        errors = [result for result in results if isinstance(result, FerryError)]
        if not errors:
            return
        problems = [problem for error in errors for problem in error.problems]
        raise (Refused if any(isinstance(error, PermanentError) for error in errors) else TemporaryError)(
            *problems
        )

    async def _patiently(self, step: Step) -> None:
        """Repeat a step while its store does not answer, for as long as the settings' patience lasts."""
        patience = self._config.settings.patience
        async for attempt in stamina.retry_context(on=TemporaryError, attempts=None, timeout=patience):
            with attempt:
                await step()

    def _open_gate(self, dataset: DatasetWork | None, checkpoints: CheckpointWork | None) -> None:
        gate = self._journal.record.gate
        if gate is None:
            works = [work for work in (dataset, checkpoints) if work is not None]
            gate = Gate(
                open=True,
                environment=_environment(self._config, checkpoints),
                summary="\n".join(work.summary() for work in works),
            )
            self._journal.record.gate = gate
            self._journal.save()
        log.info("gate open", start=self._journal.record.starts)
        self.state.open_gate(gate)

    async def _flush(self, seconds: float, *, final: bool) -> Any:
        assert self._ferry is not None  # noqa: S101 - `work` sets both together
        return await self._ferry.durable(seconds, final=final)

    async def drain(self) -> None:
        """Make durable what is whole, within the grace; name what could not be."""
        if self._ferry is not None and self.state.gate().open:
            self.state.enter(Stage.DRAINING)
            deadline = time.monotonic() + self._config.settings.grace
            while True:
                left = deadline - time.monotonic()
                answer = await self._ferry.durable(min(max(left, 0.0), LONGEST_WAIT), final=True)
                if answer.durable or answer.hopeless or left <= 0:
                    break
            if not answer.durable:
                reasons = [str(problem) for problem in answer.problems]
                log.error("not durable at the end", checkpoints=answer.pending, reasons=reasons)
        self.state.enter(Stage.ENDED)

    def clean(self) -> None:
        """Remove directories made for this agent alone, but for those that hold what is not durable."""
        places, status = self._config.places, self.state.status.checkpoints
        kept = [places.checkpoints, places.pins] if status is not None and status.pending else []
        for folder in places.temporary:
            if any(place is not None and place.is_relative_to(folder) for place in kept):
                log.warning("left in place: not everything in it is durable", directory=str(folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)


def _environment(config: AgentConfig, checkpoints: CheckpointWork | None) -> dict[str, str]:
    """What the trainer should see, with its own paths."""
    spec = config.spec
    seen = {}
    if spec.dataset is not None:
        seen[DATASET_VARIABLE] = spec.dataset.path
    if spec.checkpoints is not None:
        seen[CHECKPOINTS_VARIABLE] = spec.checkpoints.path
        if checkpoints is not None and checkpoints.restored is not None:
            seen[RESTORED_VARIABLE] = f"{spec.checkpoints.path}/{checkpoints.restored.path}"
    return seen


async def run_agent(config: AgentConfig, listener: socket.socket) -> None:
    """Live until SIGTERM or SIGINT, then drain. An unexpected error ends the process: it is started again."""
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    agent = Agent(config)
    runner = await serve(agent.api, listener)
    work = asyncio.create_task(agent.work())
    ending = asyncio.create_task(end.wait())
    try:
        await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            await ending
        await agent.drain()
    finally:
        for task in (work, ending):
            task.cancel()
        await asyncio.gather(work, ending, return_exceptions=True)
        await runner.cleanup()
    agent.clean()
