"""One agent: plans, restores, prefetches, opens the gate, uploads, drains."""

from __future__ import annotations

import asyncio
import math
import shutil
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from podferry.contract.errors import FerryError, Problem, TemporaryError
from podferry.contract.http_api import MAX_WAIT_SECONDS, Durability, Gate
from podferry.contract.status import AgentPhase, Status
from podferry.sidecar.agent.drain_deadline import DrainDeadline
from podferry.sidecar.agent.jobs import Jobs
from podferry.sidecar.agent.startup_patience import StartupPatience, repeat
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest, merge
from podferry.sidecar.runtime.concurrency import gather_all, merge_errors
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal

if TYPE_CHECKING:
    from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
    from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline

log = structlog.get_logger(__name__)

T = TypeVar("T")
Answered = Callable[[], bool]
Step = Callable[[], Coroutine[Any, Any, T]]

MAX_STARTS = 5
"""Starts of the worker, within some 6 s in all, after which an unexpected error counts as permanent."""

MIN_FLUSH_SECONDS = 1.0
"""For the trainer's last files if its end used up the grace period: Kubernetes gives at least 2."""

STARTED_PHASES = frozenset({AgentPhase.OPEN, AgentPhase.REFUSED, AgentPhase.DRAINING, AgentPhase.ENDED})


class Agent:
    """One life of the worker.

    1. `run`: plan all jobs, restore a checkpoint, fetch the datasets, start the checkpoint pipeline, open the
       gate, and upload. A worker that restarts after the gate has opened skips the first three.
    2. `drain`, in parallel with `run`, when the pod ends.
    3. `close`, then `clean_up`.

    The API serves the status, the gate and flushes from the start.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._journal = Journal(config.directories.control)
        self._journal.agent.starts += 1
        self._journal.save()
        self.state = AgentState(Status(starts=self._journal.agent.starts, started_at=time.time()))
        self._durations = Durations()
        self.api = AgentApi(self.state, self._durations)
        self.api.flush = self._flush
        self._deadline = DrainDeadline(self._journal, config.tuning.grace_seconds, in_pod=config.in_pod)
        self._jobs = Jobs(config, self._journal, self.state)
        if self._jobs.datasets is not None:
            self.api.refresh = self._jobs.datasets.refresh
        self._pipeline: CheckpointPipeline | None = None
        self._durable = self._drained = self._journal.agent.gate is None

    async def run(self) -> None:
        """Do everything up to the drain; return only if nothing is left to do.

        An unexpected error is raised: the supervisor starts a new worker, which resumes. If that does not
        help either, the gate must not stay closed for ever: it is refused.
        """
        try:
            await self._run()
        except Exception as error:
            # Any error: a pod that waits in Init for ever is worse than one that fails with a traceback.
            if self._journal.agent.gate is not None or self._journal.agent.starts < MAX_STARTS:
                raise
            log.exception("the agent fails repeatedly")
            what = f"podferry's agent failed {MAX_STARTS} times before the gate opened"
            self.state.fail(
                TemporaryError.of(what, repr(error), "Look at the log of the sidecar, and report it")
            )

    async def _run(self) -> None:
        try:
            try:
                # After the gate has opened, the trainer reads the data: it is neither fetched nor trimmed.
                if self._journal.agent.gate is None:
                    await self._prepare()
            finally:
                if self._config.spec.fetches:
                    from podferry.sidecar.fetch.workers.processes import release_idle  # noqa: PLC0415

                    await release_idle()
            if self._jobs.checkpoints is not None:
                await self._with_retries(partial(self._start_pipeline, self._jobs.checkpoints))
        except FerryError as error:
            if self._config.in_pod:  # elsewhere the command prints them
                log.error("refused", problems=[str(problem) for problem in error.problems])
            self.state.fail(error)
            return
        self._open_gate()
        running = (self._jobs.shared, self._pipeline, self._jobs.outputs)
        await gather_all(job.run() for job in running if job is not None)

    async def _prepare(self) -> None:
        """Plan all jobs in parallel and raise all their problems at once; then restore and prefetch."""
        if self._config.binding is not None:
            self._config.binding.check()
        jobs = self._jobs
        listing = jobs.datasets.plan if jobs.datasets else None
        datasets = asyncio.create_task(self._plan(listing, jobs.datasets_answered))
        checkpoints = asyncio.create_task(self._plan(jobs.checkpoints.plan if jobs.checkpoints else None))
        outputs = asyncio.create_task(self._plan(jobs.outputs.plan if jobs.outputs else None))
        shared = asyncio.create_task(self._plan(jobs.shared.plan if jobs.shared else None))
        results = await asyncio.gather(datasets, checkpoints, outputs, shared, return_exceptions=True)
        error = merge_errors(results)
        if error is not None:
            raise error
        restore_plan, planned_datasets = checkpoints.result(), datasets.result()
        if jobs.checkpoints is not None and restore_plan is not None:
            self.state.transition(AgentPhase.RESTORING)
            await self._with_retries(partial(jobs.checkpoints.restore, restore_plan), lambda: True)
        if planned_datasets is not None:
            self.state.transition(AgentPhase.PREFETCHING)
            await planned_datasets.fetch()

    async def _plan(self, plan: Step[T] | None, answered: Answered = lambda: False) -> T | None:
        return None if plan is None else await self._with_retries(plan, answered)

    async def _start_pipeline(self, checkpoints: CheckpointJob) -> None:
        self._pipeline = await checkpoints.start(self._durations)
        self._deadline.handover = checkpoints.handover
        self.api.mark = self._pipeline.mark

    async def _with_retries(self, step: Step[T], answered: Answered = lambda: False) -> T:
        """Repeat a step while its store does not answer, within the startup timeout.

        After the gate has opened there is no timeout, because training continues meanwhile.
        """
        closed = self._journal.agent.gate is None
        seconds = self._config.tuning.startup_timeout if closed else math.inf
        return await repeat(step, StartupPatience(seconds, time.monotonic()), answered)

    def _open_gate(self) -> None:
        gate = self._journal.agent.gate
        if gate is None:
            gate = Gate(open=True, environment=self._jobs.environment(), summary=self._jobs.summary())
            self._journal.agent.gate = gate
            self._journal.save()
        log.info("gate open", start=self._journal.agent.starts)
        self.state.open_gate(gate)

    async def _flush(self, seconds: float, request: FlushRequest) -> Durability:
        """Wait for durability; the first request that reports the pod's end starts the drain's clock."""
        if not await self._wait_started(seconds):
            return self._not_started()
        if request.ending and self.state.gate().open:
            await self._deadline.begin()
        flushes = []
        if self._pipeline is not None:
            flushes.append(
                self._pipeline.flush(
                    seconds, final=request.final, ending=request.ending, succeeded=request.succeeded
                )
            )
        if self._jobs.outputs is not None and (request.final or request.ending):
            flushes.append(self._jobs.outputs.flush(seconds, request.exit_code))
        return merge(await asyncio.gather(*flushes))

    async def _wait_started(self, seconds: float) -> bool:
        """After a restart during training, wait until this worker has resumed; whether it has."""
        if self._journal.agent.gate is None:
            return True
        await self.state.wait_for(lambda: self.state.status.phase in STARTED_PHASES, seconds)
        return self.state.gate().open

    def _not_started(self) -> Durability:
        """The answer while this worker has not resumed, or if it cannot."""
        refused = self.state.status.problems
        starting = Problem("the agent is restarting, and has not looked yet")
        return Durability(durable=False, problems=refused or (starting,), hopeless=bool(refused))

    async def drain(self) -> None:
        """Make what is complete durable, within the grace period; report what is not."""
        started = await self._wait_started(self._deadline.left())
        if self.state.gate().open:
            await self._deadline.begin()
            self.state.transition(AgentPhase.DRAINING)
            drains = []
            if self._pipeline is not None:
                drains.append(self._drain_pipeline(self._pipeline))
            if self._jobs.outputs is not None:
                drains.append(self._jobs.outputs.finish(time.monotonic() + self._deadline.left()))
            answers = await asyncio.gather(*drains)
            self._drained = True
            await self._deadline.conclude(merge(answers))
        elif not started:
            await self._deadline.conclude(self._not_started())
        self.state.transition(AgentPhase.ENDED)

    async def _drain_pipeline(self, pipeline: CheckpointPipeline) -> Durability:
        while True:
            wait = max(min(self._deadline.left(), MAX_WAIT_SECONDS), MIN_FLUSH_SECONDS)
            answer = await pipeline.flush(wait, final=True, ending=True)
            self._durable = answer.durable
            if answer.durable or answer.hopeless or self._deadline.left() <= 0:
                return answer

    async def close(self) -> None:
        """Release connections, the file watch and the staging directories' locks."""
        await self._jobs.close()

    def clean_up(self) -> None:
        """Remove directories made for this agent alone, unless they contain files that are not durable."""
        directories = self._config.directories
        writers = self._jobs.checkpoints is not None and self._jobs.checkpoints.has_writers()
        kept = [] if self._durable and not writers else [directories.checkpoints, directories.holds]
        if not self._drained or (self._jobs.outputs is not None and self._jobs.outputs.incomplete):
            kept.append(directories.outputs)
        left = [
            directory
            for directory in directories.temporary
            if any(path is not None and path.is_relative_to(directory) for path in kept)
        ]
        if left:
            reason = "a process of the trainer still runs" if writers else "not everything is durable"
            log.warning("left in place", reason=reason, directories=list(map(str, left)))
        # The run's own goes last, and only if nothing is left: an upload of what is left needs it.
        own = [directories.run.path] if directories.run is not None and not left else []
        for directory in (*directories.temporary, *own):
            if directory not in left:
                shutil.rmtree(directory, ignore_errors=True)
