"""A worker that restarts after the gate has opened: what it may report before it is back, or if it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import AccessDenied, FerryError, Unavailable
from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.status import AgentPhase
from podferry.sidecar.agent.agent import Agent
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import CheckpointSettings, Tuning
from podferry.sidecar.control.agent_api import FlushRequest
from tests.support.patience import PATIENCE

QUICK = Tuning(
    grace_seconds=PATIENCE,
    startup_timeout=0.5,
    checkpoint=CheckpointSettings(quiet_seconds=0.01, quiet_seconds_no_close=0.02, poll_seconds=0.01),
)
Running = Callable[..., AbstractAsyncContextManager[Agent]]


@pytest.fixture
def config(tmp_path: Path) -> Callable[[], AgentConfig]:
    """A configuration over directories that exist."""

    def make() -> AgentConfig:
        checkpoints = tmp_path / "checkpoints"
        checkpoints.mkdir(exist_ok=True)
        directories = Directories(
            control=tmp_path / "control", checkpoints=checkpoints, holds=tmp_path / "pins"
        )
        spec = FerrySpec(
            checkpoints=CheckpointSpec(f"file://{tmp_path}/destination", str(checkpoints)),
            lineage="team.job.digits",
        )
        return AgentConfig(spec, directories, tuning=QUICK, in_pod=True)

    return make


@pytest.fixture
def running() -> Running:
    """A running agent; leaving the block cancels it without a drain, as if killed."""

    @asynccontextmanager
    async def run(config: AgentConfig) -> AsyncIterator[Agent]:
        agent = Agent(config)
        work = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await agent.close()

    return run


async def settled(agent: Agent) -> AgentPhase:
    """The phase once the gate is open or refused."""
    final = {AgentPhase.OPEN, AgentPhase.REFUSED}
    assert await agent.state.wait_for(lambda: agent.state.status.phase in final, PATIENCE)
    return agent.state.status.phase


def failing(error: FerryError, times: int) -> Callable[..., Any]:
    """`CheckpointJob.start`, which first fails `times` times."""
    begin, left = CheckpointJob.start, [error] * times

    async def start(work: CheckpointJob, durations: Any) -> CheckpointPipeline:
        if left:
            raise left.pop()
        return await begin(work, durations)

    return start


async def test_a_restarted_worker_waits_for_a_store_that_does_not_answer(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(config()) as agent:
        await settled(agent)
    (tmp_path / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
    monkeypatch.setattr(CheckpointJob, "start", failing(Unavailable.of("no route"), 3))
    impatient = msgspec.structs.replace(QUICK, startup_timeout=0.0)
    async with running(replace(config(), tuning=impatient)) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        assert agent.api.flush is not None
        assert (await agent.api.flush(PATIENCE, FlushRequest())).durable
    commits = tmp_path / "destination/team.job.digits/.podferry/commits"
    assert [path.name for path in commits.iterdir()] == ["000000000001.json"]


async def test_a_restarted_worker_that_is_refused_reports_that_nothing_is_known(
    config: Callable[..., AgentConfig],
    running: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(config()) as agent:
        await settled(agent)
    written = tmp_path / "checkpoints" / "epoch-1.bin"
    written.write_bytes(b"one")
    monkeypatch.setattr(CheckpointJob, "start", failing(AccessDenied.of("the key has gone"), 1))
    given = config()
    given = replace(given, directories=replace(given.directories, temporary=(tmp_path / "checkpoints",)))
    async with running(given) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert agent.api.flush is not None
        answer = await agent.api.flush(PATIENCE, FlushRequest(final=True))
        assert (answer.durable, answer.hopeless) == (False, True)
        assert "the key has gone" in str(answer.problems[0])
        with capture_logs() as logs:
            await agent.drain()
        agent.clean_up()
    assert written.exists()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["not durable at the end"]
    answer = await agent.api.flush(0, FlushRequest(final=True))
    assert not answer.durable


async def test_directories_stay_if_the_drain_had_no_time_to_scan(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
    written = tmp_path / "checkpoints" / "epoch-1.bin"
    written.write_bytes(b"one")
    given = config()
    given = replace(given, directories=replace(given.directories, temporary=(tmp_path / "checkpoints",)))
    given = replace(given, tuning=msgspec.structs.replace(QUICK, grace_seconds=0.0))
    agent = Agent(given)
    await agent.drain()
    agent.clean_up()
    assert written.exists()
