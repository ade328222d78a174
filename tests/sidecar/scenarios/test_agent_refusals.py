"""What the agent refuses before training, and the message for each bad input."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from podferry.contract.destination.commit import commit_name
from podferry.contract.pod_binding import PodBinding
from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec
from podferry.contract.status import AgentPhase
from podferry.sidecar.config.agent_config import AgentConfig
from tests.support.agent_site import QUICK, commits, config_over, flush, names, running, settled, three_files


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return three_files(tmp_path)


@pytest.fixture
def config(tmp_path: Path, remote: Path) -> Callable[..., AgentConfig]:
    """See `config_over`."""
    return partial(config_over, tmp_path, remote)


def with_reference(spec: FerrySpec, reference: str) -> FerrySpec:
    return msgspec.structs.replace(spec, datasets=(DatasetSpec(reference, spec.datasets[0].path),))


def _nothing_there(spec: FerrySpec, _: Path, remote: Path) -> FerrySpec:
    return with_reference(spec, f"file://{remote}x")


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
    return with_reference(spec, "s4://bucket/data")


def _other_digest(spec: FerrySpec, _: Path, remote: Path) -> FerrySpec:
    frozen = f"file://{remote}#sha256={'0' * 64}&bytes=1&files=1"
    return with_reference(spec, frozen)


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


async def test_a_copy_of_the_pod_touches_nothing(config: Callable[..., AgentConfig], tmp_path: Path) -> None:
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
    config: Callable[..., AgentConfig], tmp_path: Path
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
    config: Callable[..., AgentConfig], tmp_path: Path, remote: Path
) -> None:
    good = config()
    spec = _no_checkpoint_directory(_nothing_there(good.spec, tmp_path, remote), tmp_path, remote)
    async with running(AgentConfig(spec, good.directories, tuning=QUICK, in_pod=True)) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert len(agent.state.gate().problems) == 2


async def test_a_missing_secret_is_named(config: Callable[..., AgentConfig], tmp_path: Path) -> None:
    good = config()
    lost = AgentConfig(
        good.spec, good.directories, dataset_secrets={"": tmp_path / "nowhere"}, tuning=QUICK, in_pod=True
    )
    async with running(lost) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert "there are no credentials in" in str(agent.state.gate().problems[0])


async def test_a_store_that_never_answers_is_refused_as_temporary(
    config: Callable[..., AgentConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    good = config()
    spec = with_reference(FerrySpec(datasets=good.spec.datasets), "s3://bucket/x")
    async with running(AgentConfig(spec, good.directories, tuning=QUICK, in_pod=True)) as agent:
        assert await settled(agent) is AgentPhase.REFUSED
        assert agent.state.gate().retryable
        assert "127.0.0.1:1" in str(agent.state.gate().problems[0])
