"""A worker that restarts after the gate has opened: what it may report before it is back, or if it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import AccessDenied, FerryError, Unavailable
from podferry.contract.status import AgentPhase
from podferry.sidecar.agent.agent import Agent
from podferry.sidecar.checkpoint.pipeline.checkpoint_job import CheckpointJob
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.control.agent_api import FlushRequest
from tests.support.agent_site import QUICK, config_over, running, settled
from tests.support.patience import PATIENCE


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., AgentConfig]:
    """See `config_over`; there is no dataset."""
    return partial(config_over, tmp_path)


def failing(error: FerryError, times: int) -> Callable[..., Any]:
    """`CheckpointJob.start`, which first fails `times` times."""
    begin, left = CheckpointJob.start, [error] * times

    async def start(work: CheckpointJob, durations: Any) -> CheckpointPipeline:
        if left:
            raise left.pop()
        return await begin(work, durations)

    return start


async def test_a_restarted_worker_waits_for_a_store_that_does_not_answer(
    config: Callable[..., AgentConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    config: Callable[..., AgentConfig], tmp_path: Path
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
