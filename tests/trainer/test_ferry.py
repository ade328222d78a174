"""`with ferry(...)`: its own agent, an injected one, and durability at the end of the block."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podferry.contract.errors import InvalidSpec, PermanentError
from podferry.contract.http_api import Durability
from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.control import http_client
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch import local_agent
from podferry.sidecar.launch.leftovers import find_leftovers, remove
from podferry.trainer import DoubtfulError, Ferry, Mode, NotDurableError, ferry, own_pod
from podferry.trainer.embedded import kfp_lineage
from tests.support.pod_api_server import StandInApiServer


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_bytes(os.urandom(5000))
    return data


def newest(tmp_path: Path, lineage: str = "t") -> dict[str, object]:
    document: dict[str, object] = json.loads(
        (tmp_path / "destination" / lineage / ".podferry/latest.json").read_text()
    )
    return document


def train(tmp_path: Path, name: str, content: bytes, *, fail: bool = False) -> None:
    with ferry(checkpoints=tmp_path / "destination", lineage="t") as f:
        assert f.checkpoints is not None
        (f.checkpoints / name).write_bytes(content)
        if fail:
            raise ZeroDivisionError


def test_an_artifact_of_kfp_stages_the_dataset_that_it_names(tmp_path: Path, remote: Path) -> None:
    """Not the document about it, which its URI names."""
    data = SimpleNamespace(uri=str(tmp_path / "page.html"), metadata={"podferry-reference": str(remote)})
    with ferry(data) as f:
        assert f.dataset is not None
        assert [one.name for one in f.dataset.iterdir()] == ["a"]


def test_leaving_the_block_means_durable(tmp_path: Path, remote: Path) -> None:
    with ferry(remote, tmp_path / "destination", lineage="t") as f:
        assert f.dataset is not None
        assert f.checkpoints is not None
        assert (f.dataset / "a").read_bytes() == (remote / "a").read_bytes()
        assert f.restored is None
        (f.checkpoints / "epoch-1.bin").write_bytes(b"one")
    assert newest(tmp_path)["name"] == "epoch-1"
    with ferry(remote, tmp_path / "destination", lineage="t") as f:
        assert f.restored is not None
        assert f.restored.read_bytes() == b"one"


def test_several_datasets_have_names_and_selections_of_their_own(tmp_path: Path, remote: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("x.jpg", "y.txt"):
        (other / name).write_bytes(b"1")
    with ferry({"": remote, "test": other}, include={"test": "*.jpg"}) as f:
        assert f.dataset is not None
        assert sorted(path.name for path in f.dataset.iterdir()) == ["a"]
        assert f.datasets.keys() == {"test"}
        assert sorted(path.name for path in f.datasets["test"].iterdir()) == ["x.jpg"]


def test_ranks_of_a_launcher_have_parts_of_one_dataset(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (remote / "b").write_bytes(b"2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    parts, digests = [], set()
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        with ferry(remote, shard="auto") as f:
            assert f.dataset is not None
            parts.append(sorted(path.name for path in f.dataset.iterdir()))
            digests.add(f.status().datasets[0].digest)
    assert parts == [["a"], ["b"]]
    assert len(digests) == 1


def test_durable_in_the_middle(tmp_path: Path) -> None:
    with ferry(checkpoints=tmp_path / "destination", lineage="t") as f:
        assert f.checkpoints is not None
        (f.checkpoints / "epoch-1.bin").write_bytes(b"one")
        durable = f.wait_durable(30)
        assert durable is not None
        assert (durable.name, durable.sequence) == ("epoch-1", 1)
        assert newest(tmp_path)["sequence"] == 1


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_the_agent() -> None:
    """SIGKILL to the supervisor and its worker."""
    for supervisor in children(os.getpid()):
        for worker in children(supervisor):
            os.kill(worker, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)


def test_an_agent_that_is_killed_with_its_worker_is_replaced(tmp_path: Path, remote: Path) -> None:
    with ferry(remote, tmp_path / "destination", lineage="t") as f:
        assert f.checkpoints is not None
        assert f.dataset is not None
        (f.checkpoints / "epoch-1.bin").write_bytes(b"one")
        kill_the_agent()
        (f.checkpoints / "epoch-2.bin").write_bytes(b"two")
        assert f.wait_durable(40, final=True) is not None
        assert (f.dataset / "a").exists()
    assert newest(tmp_path)["name"] == "epoch-2"


def test_without_an_agent_the_end_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_agent, "RESTART_PAUSES", ())
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.1)
    directories = []

    def train_without_agent() -> None:
        with ferry(checkpoints=tmp_path / "destination", lineage="t") as f:
            assert f.checkpoints is not None
            directories.append(f.checkpoints)
            (f.checkpoints / "epoch-1.bin").write_bytes(b"one")
            kill_the_agent()

    with pytest.raises(NotDurableError, match="not durable: epoch-1"):
        train_without_agent()
    said = capfd.readouterr().err
    assert f"what is not durable is left in {directories[0]}" in said
    (left,) = [one for one in find_leftovers().leftovers if one.checkpoints == str(directories[0])]
    assert f"podferry leftovers upload {left.id}" in said
    assert left.not_durable == ("epoch-1",)
    remove(left)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1])
def test_a_timeout_that_no_timer_takes_is_refused_before_training(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InvalidSpec, match="not a number of seconds"):
        ferry(checkpoints=tmp_path / "destination", durable_timeout=seconds).__enter__()
    assert not (tmp_path / "destination").exists()


def test_an_exception_propagates_and_complete_checkpoints_are_durable(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        train(tmp_path, "epoch-1.bin", b"one", fail=True)
    assert newest(tmp_path)["name"] == "epoch-1"


def test_leaving_the_block_raises_if_the_last_checkpoint_is_torn(tmp_path: Path) -> None:
    with pytest.raises(NotDurableError, match="epoch-1 is not complete"):
        train(tmp_path, "epoch-1.npz", b"PK\3\4 torn")


@pytest.mark.parametrize("own", [True, False])
def test_leaving_the_block_raises_if_the_last_checkpoint_is_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    last = DurableCheckpoint("epoch-1", 1, 1, 10, 0.0, 0.0, ("nothing shows where it ends",))
    asked: list[dict[str, object]] = []

    def answer(_: AgentClient, timeout: float, **how: object) -> Durability:
        asked.append(how)
        return Durability(durable=True, last=last)

    with ferry(checkpoints=tmp_path / "destination", lineage="t") as outer:
        monkeypatch.setattr(AgentClient, "wait_durable", answer)
        if not own:
            monkeypatch.setenv("PODFERRY_AGENT", outer._client.url)
        with (
            pytest.raises(
                DoubtfulError, match=r"epoch-1, is doubtful.*confirm file://.* t epoch-1"
            ) as caught,
            ferry(checkpoints=tmp_path / "destination", lineage="t") as f,
        ):
            assert f.wait_durable() == last
        monkeypatch.undo()
    assert caught.value.exit_code == 76
    assert (asked[-1].get("final", False), asked[-1]["exit_code"]) == (own, 0)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ZeroDivisionError(), 1),
        (KeyboardInterrupt(), 1),
        (SystemExit(), 0),
        (SystemExit(5), 5),
        (SystemExit("x"), 1),
    ],
)
def test_the_agent_learns_how_the_block_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    asked: list[object] = []
    wait = AgentClient.wait_durable

    def recorded(client: AgentClient, timeout: float, **how: Any) -> Durability:
        asked.append(how["exit_code"])
        return wait(client, timeout, **how)

    monkeypatch.setattr(AgentClient, "wait_durable", recorded)
    with pytest.raises(type(error)), ferry(checkpoints=tmp_path / "destination", lineage="t"):
        raise error
    assert asked == [code]


def test_errors_are_raised_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="restor") as caught, ferry(tmp_path, restor="auto", world=0):
        pass
    assert len(caught.value.problems) >= 2


def test_what_is_no_location_is_refused_with_any_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent in ("", "http://127.0.0.1:1"):
        monkeypatch.setenv("PODFERRY_AGENT", agent)
        with pytest.raises(InvalidSpec, match=r"the dataset is 0\.1.*ParallelFor") as caught:
            ferry(0.1, "$(inputs.out)").__enter__()  # type: ignore[arg-type]
        assert len(caught.value.problems) == 2


def test_a_missing_dataset_is_a_permanent_error(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="nothing does not exist"), ferry(tmp_path / "nothing"):
        pass


@pytest.fixture
def injected(tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ferry]:
    """An agent in place of a pod's sidecar, and its address."""
    with ferry(remote, tmp_path / "destination", lineage="outer") as outer:
        monkeypatch.setenv("PODFERRY_AGENT", outer._client.url)
        yield outer


def test_an_injected_agent_is_used(
    injected: Ferry,
    tmp_path: Path,
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    reference = f"file://{remote}#sha256={injected.status().datasets[0].digest}&bytes=5000&files=1"
    with ferry(reference, f"file://{tmp_path}/destination", keep_local=7) as inner:
        assert (inner.dataset, inner.checkpoints) == (injected.dataset, injected.checkpoints)
        assert (injected.mode, inner.mode, inner.restored) == ("process", "injected", None)
    assert "podferry: using the pod's agent" in capfd.readouterr().err


def test_in_a_pod_without_an_agent_its_own_is_used_and_the_missing_injection_named(
    tmp_path: Path,
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    api_server: StandInApiServer,
) -> None:
    api_server.has("pods/step-1", {"metadata": {"annotations": {"podferry.io/dataset": "s3://a/b"}}})
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KFP_POD_NAME", "step-1")
    monkeypatch.setattr(own_pod, "pod_api", lambda *_, **__: api_server.api)
    with ferry(remote, tmp_path / "destination", lineage="t") as f:
        assert f.mode is Mode.POD
        assert f.dataset is not None
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("podferry: ")]
    assert said[0].startswith("podferry: an agent of this process, in a pod without one")
    assert said[1].startswith("podferry: this pod has podferry.io/dataset, but no agent was injected")


def test_parallel_steps_share_no_directory(tmp_path: Path, remote: Path) -> None:
    with ferry(remote, tmp_path / "one", lineage="a") as first, ferry(remote, tmp_path / "two") as second:
        found = {first.dataset, first.checkpoints, second.dataset, second.checkpoints}
        assert len(found) == 4


@pytest.mark.usefixtures("injected")
def test_an_injected_agent_without_a_dataset_of_that_name_is_refused(remote: Path) -> None:
    with (
        pytest.raises(InvalidSpec, match=r"another dataset\.test .*the agent has none"),
        ferry({"": remote, "test": remote}),
    ):
        pass


@pytest.mark.usefixtures("injected")
def test_an_injected_agent_with_another_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as caught, ferry(tmp_path / "other", tmp_path / "elsewhere"):
        pass
    assert [problem.what for problem in caught.value.problems] == [
        "the injected agent has another dataset",
        "the injected agent has another checkpoints",
    ]


def test_kfp_steps_on_this_machine_have_a_lineage_that_lasts() -> None:
    def words(run: str, value: str) -> list[str]:
        given = {
            "inputs": {"parameterValues": {"data": value}},
            "outputs": {"outputFile": f"/{run}/out.json"},
        }
        return ["executor_main.py", "--executor_input", json.dumps(given), "--function_to_execute", "train"]

    assert kfp_lineage(words("run-1", "x")) == kfp_lineage(words("run-2", "x"))
    assert kfp_lineage(words("run-1", "x")) != kfp_lineage(words("run-1", "y"))
    assert kfp_lineage(["train.py"]) is None
