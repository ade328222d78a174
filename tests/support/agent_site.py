"""An agent in this process, over local directories and stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec
from podferry.contract.status import AgentPhase
from podferry.sidecar.agent.agent import Agent
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


def three_files(base: Path) -> Path:
    """The directory of a dataset of three files, one of them large."""
    data = base / "remote" / "digits"
    (data / "train").mkdir(parents=True)
    (data / "a.bin").write_bytes(b"a" * 1000)
    (data / "train" / "b.bin").write_bytes(os.urandom(40 << 20))
    (data / "train" / "empty").touch()
    return data


def config_over(base: Path, dataset: Path | None = None, **changes: Any) -> AgentConfig:
    """A configuration over directories below `base`, which exist; keywords replace parts of the spec."""
    directories = Directories(
        control=base / "control",
        datasets={"": base / "stage"} if dataset is not None else {},
        checkpoints=base / "checkpoints",
        holds=base / "pins",
    )
    for name in ("stage", "checkpoints"):
        (base / name).mkdir(exist_ok=True)
    spec = FerrySpec(
        datasets=() if dataset is None else (DatasetSpec(f"file://{dataset}", str(base / "stage")),),
        checkpoints=CheckpointSpec(f"file://{base}/destination", str(directories.checkpoints)),
        lineage="team.job.digits",
    )
    return AgentConfig(msgspec.structs.replace(spec, **changes), directories, tuning=QUICK, in_pod=True)


@asynccontextmanager
async def running(config: AgentConfig) -> AsyncIterator[Agent]:
    """A running agent; leaving the block cancels it without a drain, as if killed."""
    agent = Agent(config)
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await agent.close()


async def settled(agent: Agent) -> AgentPhase:
    """The phase once the gate is open or refused."""
    final = {AgentPhase.OPEN, AgentPhase.REFUSED}
    assert await agent.state.wait_for(lambda: agent.state.status.phase in final, PATIENCE)
    return agent.state.status.phase


async def flush(agent: Agent) -> None:
    """Wait until everything is durable."""
    assert agent.api.flush is not None
    assert (await agent.api.flush(PATIENCE, FlushRequest())).durable


def names(folder: Path) -> list[str]:
    """What is directly in a directory, sorted."""
    return sorted(path.name for path in folder.iterdir())


def commits(base: Path) -> list[str]:
    """The names of the commits at the destination."""
    return names(base / "destination/team.job.digits/.podferry/commits")
