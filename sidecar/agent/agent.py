"""The worker: plan, restore, prefetch, open the gate, ferry checkpoints, drain. One walk, top to bottom."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import stamina
import structlog

from podferry.contract.api import (
    CHECKPOINTS_VARIABLE,
    MAX_WAIT_SECONDS,
    OUTPUTS_VARIABLE,
    RESTORED_VARIABLE,
    Durability,
    Gate,
)
from podferry.contract.errors import FerryError, Problem, TemporaryError
from podferry.contract.status import AgentPhase, Status
from podferry.sidecar.agent.drain_deadline import DrainDeadline
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest, merge
from podferry.sidecar.dataset.datasets_job import DatasetsJob
from podferry.sidecar.fetch.worker_prefork import release_idle
from podferry.sidecar.runtime.concurrency import gather_all, merge_errors
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal

if TYPE_CHECKING:
    from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
    from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
    from podferry.sidecar.checkpoint.pipeline.restore_plan import RestorePlan
    from podferry.sidecar.outputs.output_job import OutputJob

log = structlog.get_logger(__name__)

MAX_RESTARTS = 5
"""Starts of the worker, some 6 s apart in all, after which an unexpected error is no accident."""

LAST_LOOK = 1.0
"""Seconds for what the trainer wrote last where its end used up the grace: Kubernetes gives at least 2."""

AT_WORK = frozenset({AgentPhase.OPEN, AgentPhase.REFUSED, AgentPhase.DRAINING, AgentPhase.ENDED})

T = TypeVar("T")
Step = Callable[[], Coroutine[Any, Any, T]]


class Agent:
    """One life of a worker."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._journal = Journal(config.directories.control)
        self._journal.agent.starts += 1
        self._journal.save()
        self.state = AgentState(Status(starts=self._journal.agent.starts, started_at=time.time()))
        self._durations = Durations()
        self.api = AgentApi(self.state, self._durations)
        self.api.flush = self._flush
        self._ending = DrainDeadline(self._journal, config.tuning.grace_seconds)
        self._datasets: DatasetsJob | None = None
        self._checkpoints: CheckpointJob | None = None
        self._outputs: OutputJob | None = None
        self._pipeline: CheckpointPipeline | None = None
        self._durable = self._drained_all = self._journal.agent.gate is None
        self._make_works()

    async def work(self) -> None:
        """Everything up to the drain; returns only where there is nothing (more) to do.

        An unexpected error passes, and the supervisor starts a new worker, which goes on. Where that does not
        help either, the gate must not wait for ever: it is refused.
        """
        try:
            await self._work()
        except Exception as error:
            # Whatever it is: a pod that waits in Init for ever is worse than one that fails with a traceback.
            if self._journal.agent.gate is not None or self._journal.agent.starts < MAX_RESTARTS:
                raise
            log.exception("the agent fails again and again")
            what = f"podferry's agent failed {MAX_RESTARTS} times before the gate opened"
            self.state.fail(
                TemporaryError.of(what, repr(error), "Look at the log of the sidecar, and report it")
            )

    async def _work(self) -> None:
        try:
            try:
                await self._prepare()
            finally:
                await release_idle()
            if self._checkpoints is not None:
                await self._patiently(self._start_pipeline)
        except FerryError as error:
            log.error("refused", problems=[str(problem) for problem in error.problems])
            self.state.fail(error)
            return
        self._open_gate()
        await gather_all(work.run() for work in (self._pipeline, self._outputs) if work is not None)

    def _make_works(self) -> None:
        """Make the jobs of this pod.

        What a pod does not configure is not even loaded: training waits for this start. The rest is loaded
        now, before anybody asks, because loading holds up the loop.
        """
        spec = self._config.spec
        if spec.datasets:
            self._datasets = DatasetsJob(self._config, self.state)
            self.api.refresh = self._datasets.refresh
        if spec.checkpoints is not None:
            from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob  # noqa: PLC0415

            self._checkpoints = CheckpointJob(spec.checkpoints, self._config, self._journal, self.state)
        if spec.outputs is not None:
            from podferry.sidecar.outputs.output_job import OutputJob  # noqa: PLC0415

            writer = self._journal.agent.writer
            self._outputs = OutputJob(spec.outputs, self._config, self.state, writer)

    async def _start_pipeline(self) -> None:
        assert self._checkpoints is not None  # noqa: S101 - only called where there are checkpoints
        self._pipeline = await self._checkpoints.start(self._durations)
        self._ending.handover = self._checkpoints.handover
        self.api.mark = self._pipeline.mark

    def _works(self) -> list[DatasetsJob | CheckpointJob | OutputJob]:
        works = (self._datasets, self._checkpoints, self._outputs)
        return [work for work in works if work is not None]

    async def _prepare(self) -> None:
        # Once the gate has opened, data is neither fetched nor trimmed again: the trainer is reading it.
        if self._journal.agent.gate is not None:
            return
        restore_plan = await self._plan_all()
        if self._checkpoints is not None and restore_plan is not None:
            self.state.transition(AgentPhase.RESTORING)
            await self._patiently(partial(self._checkpoints.restore, restore_plan))
        if self._datasets is not None:
            self.state.transition(AgentPhase.PREFETCHING)
            await self._datasets.fetch()

    async def _plan_all(self) -> RestorePlan | None:
        """Run the plans of all jobs and raise all their errors at once; returns the plan of the restore."""
        steps = [self._patiently(work.plan) for work in self._works()]
        results = await asyncio.gather(*steps, return_exceptions=True)
        error = merge_errors(results)
        if error is not None:
            raise error
        return next((one for one in results if one is not None and not isinstance(one, BaseException)), None)

    async def _patiently(self, step: Step[T]) -> T:
        """Repeat a step while its store does not answer, for as long as the settings' patience lasts.

        A server that is silent takes an attempt's whole time-out: none is begun that would end too late. Once
        the gate has opened, training goes on meanwhile: patience has no end then.
        """
        trained = self._journal.agent.gate is not None
        started = began = time.monotonic()

        def in_time(error: Exception) -> bool:
            now = time.monotonic()
            ends = now + (now - began) - started
            return isinstance(error, TemporaryError) and (
                trained or ends <= self._config.tuning.startup_timeout
            )

        async for attempt in stamina.retry_context(on=in_time, attempts=None, timeout=None):
            with attempt:
                began = time.monotonic()
                result = await step()
        return result

    def _open_gate(self) -> None:
        gate = self._journal.agent.gate
        if gate is None:
            summary = "\n".join(work.summary() for work in self._works())
            gate = Gate(open=True, environment=self._environment(), summary=summary)
            self._journal.agent.gate = gate
            self._journal.save()
        log.info("gate open", start=self._journal.agent.starts)
        self.state.open_gate(gate)

    def _environment(self) -> dict[str, str]:
        """What the trainer should see, with its own paths."""
        spec = self._config.spec
        seen = {dataset.variable: dataset.path for dataset in spec.datasets}
        if spec.outputs is not None:
            seen[OUTPUTS_VARIABLE] = spec.outputs.path
        if spec.checkpoints is not None and self._checkpoints is not None:
            seen[CHECKPOINTS_VARIABLE] = spec.checkpoints.path
            if self._checkpoints.restored is not None:
                seen[RESTORED_VARIABLE] = f"{spec.checkpoints.path}/{self._checkpoints.restored.path}"
        return seen

    async def _flush(self, seconds: float, request: FlushRequest) -> Durability:
        """Wait for durability; the first who says that the pod ends starts the drain's clock."""
        if not await self._at_work(seconds):
            return self._unknown()
        if request.ending and self.state.gate().open:
            await self._ending.begin()
        answers = []
        if self._pipeline is not None:
            answers.append(self._pipeline.flush(seconds, final=request.final, ending=request.ending))
        if self._outputs is not None and (request.final or request.ending):
            answers.append(self._outputs.flush(seconds, request.exit_code))
        return merge(await asyncio.gather(*answers))

    def _unknown(self) -> Durability:
        """What can be said while this worker has not found its way back, or cannot."""
        refused = self.state.status.problems
        starting = Problem("the agent is starting again, and has not looked yet")
        return Durability(durable=False, problems=refused or (starting,), hopeless=bool(refused))

    async def _at_work(self, seconds: float) -> bool:
        """Wait until this worker has found its way back, where training runs already; whether it has."""
        if self._journal.agent.gate is None:
            return True
        await self.state.wait_for(lambda: self.state.status.stage in AT_WORK, seconds)
        return self.state.gate().open

    async def drain(self) -> None:
        """Make durable what is whole, within the grace; name what could not be."""
        back = await self._at_work(self._ending.left())
        if self.state.gate().open:
            await self._ending.begin()
            self.state.transition(AgentPhase.DRAINING)
            answers = await asyncio.gather(*self._drains())
            self._drained_all = True
            await self._ending.conclude(merge(answers))
        elif not back:
            await self._ending.conclude(self._unknown())
        self.state.transition(AgentPhase.ENDED)

    def _drains(self) -> Iterator[Coroutine[Any, Any, Durability]]:
        if self._pipeline is not None:
            yield self._drained(self._pipeline)
        if self._outputs is not None:
            yield self._outputs.finish(time.monotonic() + self._ending.left())

    async def _drained(self, pipeline: CheckpointPipeline) -> Durability:
        while True:
            wait = max(min(self._ending.left(), MAX_WAIT_SECONDS), LAST_LOOK)
            answer = await pipeline.flush(wait, final=True, ending=True)
            self._durable = answer.durable
            if answer.durable or answer.hopeless or self._ending.left() <= 0:
                return answer

    async def close(self) -> None:
        """Give back connections, the watch and the stage's lock."""
        for work in self._works():
            await work.close()

    def clean(self) -> None:
        """Remove directories made for this agent alone, but for those that hold what is not durable."""
        directories = self._config.directories
        kept = [] if self._durable else [directories.checkpoints, directories.holds]
        if not self._drained_all or (self._outputs is not None and self._outputs.left_behind):
            kept.append(directories.outputs)
        for folder in directories.temporary:
            if any(place is not None and place.is_relative_to(folder) for place in kept):
                log.warning("left in place: not everything in it is durable", directory=str(folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)
