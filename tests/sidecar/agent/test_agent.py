"""The agent in this process, with local stores: each step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from podferry.contract.destination.agent_notes import NOTES, decode_note
from podferry.contract.errors import Refused, Unavailable
from podferry.contract.spec import CheckpointSpec, Completion
from podferry.contract.status import AgentPhase
from podferry.sidecar.agent.agent import MAX_STARTS, Agent
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.control.agent_api import FlushRequest
from podferry.sidecar.dataset.dataset_job import DatasetJob
from tests.support.agent_site import QUICK, commits, config_over, flush, names, running, settled, three_files
from tests.support.patience import PATIENCE


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return three_files(tmp_path)


@pytest.fixture
def config(tmp_path: Path, remote: Path) -> Callable[..., AgentConfig]:
    """See `config_over`."""
    return partial(config_over, tmp_path, remote)


async def test_an_agent_from_start_to_drain(
    config: Callable[..., AgentConfig], remote: Path, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        for name in ("a.bin", "train/b.bin", "train/empty"):
            assert (tmp_path / "stage" / name).read_bytes() == (remote / name).read_bytes()
        gate = agent.state.gate()
        assert gate.environment == {
            "PODFERRY_DATASET": str(tmp_path / "stage"),
            "PODFERRY_CHECKPOINTS": str(tmp_path / "checkpoints"),
            "PODFERRY_LINEAGE": "team.job.digits",
        }
        assert "3 files" in gate.summary
        (tmp_path / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
        await flush(agent)
        assert commits(tmp_path) == ["000000000001.json"]
    assert not list((tmp_path / "stage").glob(".*")), "no files of podferry where the trainer lists"


async def test_a_new_attempt_resumes_and_says_so(config: Callable[..., AgentConfig], tmp_path: Path) -> None:
    async with running(config()) as agent:
        await settled(agent)
        for epoch in (1, 2):
            (tmp_path / "checkpoints" / "saving.tmp").write_bytes(b"weights %d" % epoch)
            (tmp_path / "checkpoints" / "saving.tmp").rename(tmp_path / "checkpoints" / f"epoch-{epoch}.bin")
            await flush(agent)
    for folder in ("control", "stage", "checkpoints", "pins"):
        (tmp_path / folder).rename(tmp_path / f"old-{folder}")
    async with running(config()) as agent:
        await settled(agent)
        assert agent.state.gate().environment["PODFERRY_RESTORED"] == str(
            tmp_path / "checkpoints/epoch-2.bin"
        )
        assert "resuming from epoch-2" in agent.state.gate().summary
        assert names(tmp_path / "checkpoints") == ["epoch-2.bin"]
        await flush(agent)
        assert len(commits(tmp_path)) == 2, "what was restored is not uploaded again"


async def test_after_the_gate_a_restarted_worker_neither_fetches_nor_deletes(
    config: Callable[..., AgentConfig], remote: Path, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
    (remote / "a.bin").write_bytes(b"changed")
    (tmp_path / "stage" / "a.bin").unlink()
    async with running(config()) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        assert agent.state.status.starts == 2
        assert not (tmp_path / "stage" / "a.bin").exists()
        (tmp_path / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
        await flush(agent)
        assert commits(tmp_path) == ["000000000001.json"]


async def test_before_the_gate_a_restarted_worker_keeps_complete_files(
    config: Callable[..., AgentConfig], tmp_path: Path
) -> None:
    async with running(config(checkpoints=None)) as agent:
        await settled(agent)
    (tmp_path / "control" / "journal.json").unlink()
    (tmp_path / "stage" / "a.bin").unlink()
    async with running(config(checkpoints=None)) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        assert [one.files_kept for one in agent.state.status.datasets] == [2]
        assert (tmp_path / "stage" / "a.bin").read_bytes() == b"a" * 1000


async def test_drain_makes_the_last_checkpoint_durable(
    config: Callable[..., AgentConfig], tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
        (tmp_path / "checkpoints" / "last.bin").write_bytes(b"last")
        await agent.drain()
        assert commits(tmp_path) == ["000000000001.json"]
        assert agent.state.status.phase is AgentPhase.ENDED


async def test_a_drain_reports_what_is_not_durable_even_after_the_grace_period(
    config: Callable[..., AgentConfig], tmp_path: Path
) -> None:
    spec = CheckpointSpec(f"file://{tmp_path}/destination", complete=Completion.MARKED)
    short = msgspec.structs.replace(QUICK, grace_seconds=0.0)
    async with running(replace(config(checkpoints=spec), tuning=short)) as agent:
        await settled(agent)
        (tmp_path / "checkpoints" / "last.bin").write_bytes(b"not marked")
        await agent.drain()
    [note] = (tmp_path / "destination" / "team.job.digits" / NOTES).iterdir()
    found = decode_note(note.read_bytes(), str(note))
    assert found.pending == ("last",)
    assert "marked" in str(found.problems[0])


async def test_drain_before_the_gate_ends_at_once(config: Callable[..., AgentConfig]) -> None:
    agent = Agent(config())
    await agent.drain()
    assert agent.state.status.phase is AgentPhase.ENDED


@pytest.mark.parametrize(("seconds", "again"), [(0.0, True), (0.3, False)])
async def test_no_attempt_starts_that_would_exceed_the_startup_timeout(
    config: Callable[..., AgentConfig],
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    again: bool,
) -> None:
    """A silent server takes a full request timeout each time; a refused connection fails at once."""
    tries = 0

    async def silent(_: DatasetJob) -> None:
        nonlocal tries
        tries += 1
        await asyncio.sleep(seconds)
        if tries > 1:
            raise Refused.of("the store refuses")
        raise Unavailable.of("the store does not answer")

    monkeypatch.setattr(DatasetJob, "plan", silent)
    patient = msgspec.structs.replace(QUICK, startup_timeout=PATIENCE)
    tuning = patient if again else QUICK
    async with running(replace(config(checkpoints=None), tuning=tuning)) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
    assert (tries > 1) is again


async def test_an_agent_that_fails_repeatedly_refuses_instead_of_hanging(
    config: Callable[..., AgentConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: DatasetJob) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(DatasetJob, "plan", broken)
    for _ in range(MAX_STARTS - 1):
        agent = Agent(config())
        with pytest.raises(ZeroDivisionError):
            await agent.run()
        await agent.close()
    async with running(config()) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert "ZeroDivisionError" in str(agent.state.gate().problems[0])
        assert agent.state.gate().retryable


async def test_a_restarted_worker_reports_nothing_as_durable_before_its_first_scan(
    config: Callable[..., AgentConfig], tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
    (tmp_path / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
    restarted = Agent(config())
    assert restarted.api.flush is not None
    answer = await restarted.api.flush(0, FlushRequest(final=True))
    assert not answer.durable
    assert "has not looked yet" in answer.problems[0].what
    await restarted.close()
