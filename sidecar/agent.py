"""The worker: plan, restore, prefetch, open the gate, ferry checkpoints, drain. One walk, top to bottom."""

from __future__ import annotations

import asyncio
import os
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

MOST_STARTS = 5
"""Starts of the worker, some 6 s apart in all, after which an unexpected error is no accident."""

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
        self._dataset: DatasetWork | None = None
        self._checkpoints: CheckpointWork | None = None
        self._ferry: CheckpointFerry | None = None

    async def work(self) -> None:
        """Everything up to the drain; returns only where there is nothing (more) to do.

        An unexpected error passes, and the supervisor starts a new worker, which goes on. Where that does not
        help either, the gate must not wait for ever: it is refused.
        """
        try:
            await self._work()
        except Exception as error:
            # Whatever it is: a pod that waits in Init for ever is worse than one that fails with a traceback.
            if self._journal.record.gate is not None or self._journal.record.starts < MOST_STARTS:
                raise
            log.exception("the agent fails again and again")
            what = f"podferry's agent failed {MOST_STARTS} times before the gate opened"
            self.state.refuse(
                TemporaryError.of(what, repr(error), "Look at the log of the sidecar, and report it")
            )

    async def _work(self) -> None:
        spec = self._config.spec
        if spec.dataset is not None:
            self._dataset = DatasetWork(spec.dataset, self._config, self.state)
        if spec.checkpoints is not None:
            self._checkpoints = CheckpointWork(spec.checkpoints, self._config, self._journal, self.state)
        try:
            # Once the gate has opened, data is neither fetched nor trimmed again: the trainer is reading it.
            if self._journal.record.gate is None:
                await self._prepare()
            if self._checkpoints is not None:
                self._ferry = self._checkpoints.ferry()
                self.api.flush = self._ferry.durable
        except FerryError as error:
            log.error("refused", problems=[str(problem) for problem in error.problems])
            self.state.refuse(error)
            return
        self._open_gate()
        if self._ferry is not None:
            await self._ferry.run()

    def _works(self) -> list[DatasetWork | CheckpointWork]:
        return [work for work in (self._dataset, self._checkpoints) if work is not None]

    async def _prepare(self) -> None:
        await self._plan_all([work.plan for work in self._works()])
        if self._checkpoints is not None:
            self.state.enter(Stage.RESTORING)
            await self._patiently(self._checkpoints.restore)
        if self._dataset is not None:
            self.state.enter(Stage.PREFETCHING)
            await self._dataset.fetch()

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
        """Repeat a step while its store does not answer, for as long as the settings' patience lasts.

        A server that is silent takes an attempt's whole time-out: none is begun that would end too late.
        """
        started = began = time.monotonic()

        def in_time(error: Exception) -> bool:
            now = time.monotonic()
            ends = now + (now - began) - started
            return isinstance(error, TemporaryError) and ends <= self._config.settings.patience

        async for attempt in stamina.retry_context(on=in_time, attempts=None, timeout=None):
            with attempt:
                began = time.monotonic()
                await step()

    def _open_gate(self) -> None:
        gate = self._journal.record.gate
        if gate is None:
            summary = "\n".join(work.summary() for work in self._works())
            gate = Gate(open=True, environment=self._environment(), summary=summary)
            self._journal.record.gate = gate
            self._journal.save()
        log.info("gate open", start=self._journal.record.starts)
        self.state.open_gate(gate)

    def _environment(self) -> dict[str, str]:
        """What the trainer should see, with its own paths."""
        spec, seen = self._config.spec, {}
        if spec.dataset is not None:
            seen[DATASET_VARIABLE] = spec.dataset.path
        if spec.checkpoints is not None and self._checkpoints is not None:
            seen[CHECKPOINTS_VARIABLE] = spec.checkpoints.path
            if self._checkpoints.restored is not None:
                seen[RESTORED_VARIABLE] = f"{spec.checkpoints.path}/{self._checkpoints.restored.path}"
        return seen

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

    async def close(self) -> None:
        """Give back connections, the watch and the stage's lock."""
        for work in self._works():
            await work.close()

    def clean(self) -> None:
        """Remove directories made for this agent alone, but for those that hold what is not durable."""
        places, status = self._config.places, self.state.status.checkpoints
        kept = [places.checkpoints, places.pins] if status is not None and status.pending else []
        for folder in places.temporary:
            if any(place is not None and place.is_relative_to(folder) for place in kept):
                log.warning("left in place: not everything in it is durable", directory=str(folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)


def _when_told(end: asyncio.Event, parent: int) -> None:
    """Set `end` at SIGTERM, SIGINT, or when the pipe `parent` closes: the supervisor is gone."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)

    def closed() -> None:
        if not os.read(parent, 1):
            loop.remove_reader(parent)
            end.set()

    loop.add_reader(parent, closed)


async def run_agent(config: AgentConfig, listener: socket.socket, parent: int = 0) -> None:
    """Live until told to end, then drain. An unexpected error ends the process: it is started again.

    Args:
        config: What to do.
        listener: Where to answer.
        parent: A pipe whose end says that the supervisor has gone.
    """
    end = asyncio.Event()
    _when_told(end, parent)
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
        await agent.close()
        await runner.cleanup()
    agent.clean()
