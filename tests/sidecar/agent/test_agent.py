"""The agent in this process, with local stores: each step, and the message for each bad input."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podferry.contract.destination.agent_notes import NOTES, decode_note
from podferry.contract.destination.commit import commit_name
from podferry.contract.errors import Refused, Unavailable
from podferry.contract.pod_binding import PodBinding
from podferry.contract.spec import CheckpointSpec, Completion, DatasetSpec, FerrySpec
from podferry.contract.status import AgentPhase
from podferry.sidecar.agent.agent import MAX_STARTS, Agent
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import CheckpointSettings, Tuning
from podferry.sidecar.control.agent_api import FlushRequest
from podferry.sidecar.dataset.dataset_job import DatasetJob
from tests.support.patience import PATIENCE

QUICK = Tuning(
    grace_seconds=PATIENCE,
    startup_timeout=0.5,
    checkpoint=CheckpointSettings(quiet_seconds=0.01, quiet_seconds_no_close=0.02, poll_seconds=0.01),
)
Running = Callable[..., AbstractAsyncContextManager[Agent]]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A dataset of three files."""
    data = tmp_path / "remote" / "digits"
    (data / "train").mkdir(parents=True)
    (data / "a.bin").write_bytes(b"a" * 1000)
    (data / "train" / "b.bin").write_bytes(os.urandom(40 << 20))
    (data / "train" / "empty").touch()
    return data


@pytest.fixture
def config(tmp_path: Path, remote: Path) -> Callable[..., AgentConfig]:
    """A configuration over directories that exist; keywords replace parts of the spec."""

    def make(**changes: Any) -> AgentConfig:
        directories = Directories(
            control=tmp_path / "control",
            datasets={"": tmp_path / "stage"},
            checkpoints=tmp_path / "checkpoints",
            holds=tmp_path / "pins",
        )
        for name in ("stage", "checkpoints"):
            (tmp_path / name).mkdir(exist_ok=True)
        spec = FerrySpec(
            datasets=(DatasetSpec(f"file://{remote}", str(tmp_path / "stage")),),
            checkpoints=CheckpointSpec(f"file://{tmp_path}/destination", str(directories.checkpoints)),
            lineage="team.job.digits",
        )
        return AgentConfig(msgspec.structs.replace(spec, **changes), directories, tuning=QUICK, in_pod=True)

    return make


@pytest.fixture
def running() -> Running:
    """A running agent; leaving the block cancels it without a drain, like a kill."""

    @asynccontextmanager
    async def run(config: AgentConfig) -> AsyncIterator[Agent]:
        agent = Agent(config)
        task = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await agent.close()

    return run


async def settled(agent: Agent) -> AgentPhase:
    """The phase once the gate is open or refused."""
    final = {AgentPhase.OPEN, AgentPhase.REFUSED}
    assert await agent.state.wait_for(lambda: agent.state.status.phase in final, PATIENCE)
    return agent.state.status.phase


async def flush(agent: Agent) -> None:
    assert agent.api.flush is not None
    assert (await agent.api.flush(PATIENCE, FlushRequest())).durable


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def commits(tmp_path: Path) -> list[str]:
    return names(tmp_path / "destination/team.job.digits/.podferry/commits")


async def test_an_agent_from_start_to_drain(
    config: Callable[..., AgentConfig], running: Running, remote: Path, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        for name in ("a.bin", "train/b.bin", "train/empty"):
            assert (tmp_path / "stage" / name).read_bytes() == (remote / name).read_bytes()
        gate = agent.state.gate()
        assert gate.environment == {
            "PODFERRY_DATASET": str(tmp_path / "stage"),
            "PODFERRY_CHECKPOINTS": str(tmp_path / "checkpoints"),
        }
        assert "3 files" in gate.summary
        (tmp_path / "checkpoints" / "epoch-1.bin").write_bytes(b"one")
        await flush(agent)
        assert commits(tmp_path) == ["000000000001.json"]
    assert not list((tmp_path / "stage").glob(".*")), "no files of podferry where the trainer lists"


async def test_a_new_attempt_resumes_and_says_so(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
        for epoch in (1, 2):
            (tmp_path / "checkpoints" / f"epoch-{epoch}.bin").write_bytes(b"weights %d" % epoch)
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
    config: Callable[..., AgentConfig], running: Running, remote: Path, tmp_path: Path
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
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
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
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    async with running(config()) as agent:
        await settled(agent)
        (tmp_path / "checkpoints" / "last.bin").write_bytes(b"last")
        await agent.drain()
        assert commits(tmp_path) == ["000000000001.json"]
        assert agent.state.status.phase is AgentPhase.ENDED


async def test_a_drain_reports_what_is_not_durable_even_after_the_grace_period(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
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


def bringing(spec: FerrySpec, reference: str) -> FerrySpec:
    return msgspec.structs.replace(spec, datasets=(DatasetSpec(reference, spec.datasets[0].path),))


def _nothing_there(spec: FerrySpec, _: Path, remote: Path) -> FerrySpec:
    return bringing(spec, f"file://{remote}x")


def _foreign_stage(spec: FerrySpec, tmp_path: Path, _: Path) -> FerrySpec:
    (tmp_path / "stage" / "somebody.txt").write_text("mine")
    return spec


def _no_checkpoint_directory(spec: FerrySpec, tmp_path: Path, _: Path) -> FerrySpec:
    (tmp_path / "checkpoints").rmdir()
    return spec


def _closed_destination(spec: FerrySpec, tmp_path: Path, _: Path) -> FerrySpec:
    (tmp_path / "destination").write_text("a file where the directory should be")
    return spec


def _later_commit(spec: FerrySpec, tmp_path: Path, _: Path) -> FerrySpec:
    path = tmp_path / "destination/team.job.digits" / commit_name(7)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 3}')
    return spec


def _unknown_scheme(spec: FerrySpec, _: Path, __: Path) -> FerrySpec:
    return bringing(spec, "s4://bucket/data")


def _other_digest(spec: FerrySpec, _: Path, remote: Path) -> FerrySpec:
    frozen = f"file://{remote}#sha256={'0' * 64}&bytes=1&files=1"
    return bringing(spec, frozen)


def _missing_restore(spec: FerrySpec, tmp_path: Path, _: Path) -> FerrySpec:
    assert spec.checkpoints is not None
    wanted = CheckpointSpec(spec.checkpoints.uri, spec.checkpoints.path, restore="epoch-9")
    return msgspec.structs.replace(spec, checkpoints=wanted)


Spoil = Callable[[FerrySpec, Path, Path], FerrySpec]
BAD: list[tuple[Spoil, list[str]]] = [
    (_nothing_there, ["digitsx does not exist", "Did you mean file://", "/remote/digits?"]),
    (_foreign_stage, ["holds files of another run", "1 file: somebody.txt", "Empty it, or choose"]),
    (_no_checkpoint_directory, ["checkpoints does not exist", "mkdir -p"]),
    (_closed_destination, ["/destination is a file, not a directory"]),
    (
        _later_commit,
        ["written by a later podferry", "format 3, this podferry reads up to 2", "Upgrade podferry"],
    ),
    (_unknown_scheme, ["no engine opens s4://", "Did you mean 's3'?"]),
    (_other_digest, ["has changed since it was frozen", "frozen: 1 files", "now: 3 files", "freeze"]),
    (_missing_restore, ["there is no checkpoint to restore"]),
]


@pytest.mark.parametrize(("spoil", "said"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
async def test_bad_input_is_refused_with_a_message(
    config: Callable[..., AgentConfig],
    running: Running,
    tmp_path: Path,
    remote: Path,
    spoil: Spoil,
    said: list[str],
) -> None:
    good = config()
    spoiled = AgentConfig(spoil(good.spec, tmp_path, remote), good.directories, tuning=QUICK, in_pod=True)
    async with running(spoiled) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        text = "\n".join(map(str, agent.state.gate().problems))
        assert [part for part in said if part not in text] == []
        assert not agent.state.gate().retryable
    assert not (tmp_path / "stage" / "a.bin").exists(), "refused before a byte moved"


async def test_a_copy_of_the_pod_touches_nothing(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    for binding in (
        PodBinding("digits", "digits-debug", "v1:1:ab"),
        PodBinding("digits", "digits-debug", ""),
    ):
        async with running(dataclasses.replace(config(), binding=binding)) as agent:
            assert await settled(agent) is AgentPhase.REFUSED
            assert "this pod is a copy" in str(agent.state.gate().problems[0])
            assert not agent.state.gate().retryable
            await agent.drain()
    assert not (tmp_path / "destination").exists()
    assert names(tmp_path / "stage") == []


async def test_annotations_that_are_removed_from_a_running_pod_stop_nothing(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    own = PodBinding("digits-*", "digits-x7k2p", "v1:1:ab")
    async with running(dataclasses.replace(config(), binding=own)) as agent:
        assert await settled(agent) is AgentPhase.OPEN
    without = msgspec.structs.replace(own, stamp="")
    async with running(dataclasses.replace(config(), binding=without)) as agent:
        assert await settled(agent) is AgentPhase.OPEN
        (tmp_path / "checkpoints" / "step-1.json").write_text('{"step": 1}')
        await flush(agent)
    assert commits(tmp_path) == ["000000000001.json"]


async def test_all_problems_are_reported_at_once(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path, remote: Path
) -> None:
    good = config()
    spec = _no_checkpoint_directory(_nothing_there(good.spec, tmp_path, remote), tmp_path, remote)
    async with running(AgentConfig(spec, good.directories, tuning=QUICK, in_pod=True)) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert len(agent.state.gate().problems) == 2


async def test_a_missing_secret_is_named(
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
) -> None:
    good = config()
    lost = AgentConfig(
        good.spec, good.directories, dataset_secrets={"": tmp_path / "nowhere"}, tuning=QUICK, in_pod=True
    )
    async with running(lost) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert "there are no credentials in" in str(agent.state.gate().problems[0])


async def test_a_store_that_never_answers_is_refused_as_temporary(
    config: Callable[..., AgentConfig], running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    good = config()
    spec = bringing(FerrySpec(datasets=good.spec.datasets), "s3://bucket/x")
    async with running(AgentConfig(spec, good.directories, tuning=QUICK, in_pod=True)) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert agent.state.gate().retryable
        assert "127.0.0.1:1" in str(agent.state.gate().problems[0])


@pytest.mark.parametrize(("seconds", "again"), [(0.0, True), (0.3, False)])
async def test_no_attempt_starts_that_would_exceed_the_startup_timeout(
    config: Callable[..., AgentConfig],
    running: Running,
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
    config: Callable[..., AgentConfig], running: Running, monkeypatch: pytest.MonkeyPatch
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
    config: Callable[..., AgentConfig], running: Running, tmp_path: Path
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
