"""The step `verify_checkpoint`: when it succeeds, and everything that must make it fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kfp import dsl

from podferry.components.checkpoints.verify_checkpoint.component import verify_checkpoint
from podferry.components.checkpoints.verify_checkpoint.runner import (
    Doubtful,
    Unsafe,
    VerifyRequest,
    run_names,
    verify,
)
from podferry.contract.destination.commit import Commit, commit_name, encode_commit

Train = Callable[..., Commit]


@pytest.fixture
def artifacts(tmp_path: Path) -> dict[str, Any]:
    """The step's output artifacts."""
    kinds = {"report": dsl.HTML, "metrics": dsl.Metrics, "model": dsl.Model}
    return {name: kind(name=name, uri=str(tmp_path / name), metadata={}) for name, kind in kinds.items()}


def test_the_newest_checkpoint_of_each_lineage_of_the_run(
    destination: str, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train("trial-1", "run-1")
    train("trial-1", "run-1", step=2)
    train("trial-2", "run-1")
    train("other", "run-0")
    verified = verify(VerifyRequest(destination, ("run-1", "job-1")))
    assert [(lineage.name, lineage.commit.step) for lineage in verified] == [("trial-1", 2), ("trial-2", 1)]
    assert verified[0].uri == f"{destination}/trial-1/last-2"
    assert "complete" in capsys.readouterr().out


def test_all_problems_of_all_lineages_are_reported(destination: str, train: Train, tmp_path: Path) -> None:
    train("gone", "run-1")
    train("short", "run-1")
    train("torn", "run-1")
    models = tmp_path / "models"
    (models / "gone/last-1/last.pt").unlink()
    (models / "short/last-1/last.pt").write_bytes(b"we")
    (models / "torn" / commit_name(1)).write_bytes(b"{")
    with pytest.raises(Unsafe) as caught:
        verify(VerifyRequest(destination, ("run-1",)))
    gone, short, torn = (problem.what for problem in caught.value.problems)
    assert gone == "gone/last-1: last.pt is missing"
    assert short == "short/last-1: last.pt has the wrong size"
    assert torn.startswith("torn: its newest commit cannot be read: ")
    assert all(problem.remedy for problem in caught.value.problems)


def test_only_full_verification_finds_a_changed_byte(destination: str, train: Train, tmp_path: Path) -> None:
    train("trial", "run-1")
    (tmp_path / "models/trial/last-1/last.pt").write_bytes(b"wEights")
    assert verify(VerifyRequest(destination, ("run-1",)))
    with pytest.raises(Unsafe, match=r"last\.pt is damaged"):
        verify(VerifyRequest(destination, ("run-1",), full=True))


def test_full_verification_of_intact_data_succeeds(destination: str, train: Train) -> None:
    train("trial", "run-1")
    train("empty", "run-1", content=b"")
    assert len(verify(VerifyRequest(destination, ("run-1",), full=True))) == 2


def test_a_training_without_a_commit_fails(destination: str, train: Train, tmp_path: Path) -> None:
    train("trial", "run-1")
    private = tmp_path / "models/fresh/.podferry"
    private.mkdir(parents=True)
    (private / "writer.json").write_text(json.dumps({"writer": "w1", "run": "run-1"}))
    with pytest.raises(Unsafe) as caught:
        verify(VerifyRequest(destination, ("run-1",)))
    assert [problem.what for problem in caught.value.problems] == ["fresh has no committed checkpoint"]


def test_a_resumed_training_with_nothing_left_counts_on_request(
    destination: str, train: Train, tmp_path: Path
) -> None:
    train("trial", "run-1")
    (tmp_path / "models/trial/.podferry/writer.json").write_text(json.dumps({"writer": "w2", "run": "run-2"}))
    with pytest.raises(Unsafe, match=r"another run's.*any_run"):
        verify(VerifyRequest(destination, ("run-2",)))
    assert verify(VerifyRequest(destination, ("run-2",), lineages=("trial",)))
    assert verify(VerifyRequest(destination, ("run-2",), any_run=True))


def test_only_the_given_lineages_are_verified(destination: str, train: Train) -> None:
    train("trial", "run-0")
    train("other", "run-1")
    (lineage,) = verify(VerifyRequest(destination, ("run-1",), lineages=("trial", "trial")))
    assert lineage.name == "trial"
    with pytest.raises(Unsafe, match=r"missing has no committed checkpoint .*Lineages there: other, trial"):
        verify(VerifyRequest(destination, lineages=("missing",)))
    with pytest.raises(Unsafe, match=r"Did you mean 'trial'\?"):
        verify(VerifyRequest(destination, lineages=("trail",)))
    with pytest.raises(Unsafe, match="not a plain path segment"):
        verify(VerifyRequest(destination, lineages=("../other",)))


def test_a_run_without_any_lineage_fails(destination: str, train: Train) -> None:
    with pytest.raises(Unsafe, match=r"this run trained no lineage.*holds 0 lineages"):
        verify(VerifyRequest(destination, ("run-1",)))
    with pytest.raises(Unsafe, match="no lineage at the destination"):
        verify(VerifyRequest(destination, any_run=True))
    train("trial", "run-0")
    with pytest.raises(Unsafe, match=r"this run trained no lineage.*holds 1 lineage;.*run-1"):
        verify(VerifyRequest(destination, ("run-1",)))


def test_a_commit_outside_kfp_belongs_to_no_run(destination: str, train: Train) -> None:
    train("trial", None)
    with pytest.raises(Unsafe, match=r"use podferry\.components\.verify"):
        verify(VerifyRequest(destination))


def test_a_doubtful_newest_checkpoint_fails_unless_it_is_allowed(
    destination: str, train: Train, capsys: pytest.CaptureFixture[str], artifacts: dict[str, Any]
) -> None:
    train("trial", "run-1")
    train("trial", "run-1", step=2, doubt="optimizer.pt is missing")
    request = VerifyRequest(destination, ("run-1",))
    with pytest.raises(Doubtful) as caught:
        verify(request)
    [problem] = caught.value.problems
    assert (problem.what, problem.measured) == (
        "trial: its newest checkpoint, last, is doubtful",
        "optimizer.pt is missing",
    )
    assert f"podferry checkpoints confirm {destination} trial last; or set allow_doubtful" in problem.remedy
    with pytest.raises(SystemExit) as ended:
        verify_checkpoint.python_func(**artifacts, checkpoints=destination, run="run-1")
    assert ended.value.code == 76
    capsys.readouterr()
    allowed = verify_checkpoint.python_func(
        **artifacts, checkpoints=destination, run="run-1", allow_doubtful=True
    )
    assert allowed == (["trial"], [f"{destination}/trial/last-2"])
    assert "allowed: trial: its newest checkpoint, last, is doubtful" in capsys.readouterr().out


def test_damage_weighs_more_than_a_doubt(destination: str, train: Train, tmp_path: Path) -> None:
    train("doubtful", "run-1", doubt="optimizer.pt is missing")
    train("gone", "run-1")
    (tmp_path / "models/gone/last-1/last.pt").unlink()
    with pytest.raises(Unsafe) as caught:
        verify(VerifyRequest(destination, ("run-1",)))
    assert not isinstance(caught.value, Doubtful)
    assert len(caught.value.problems) == 2
    with pytest.raises(Unsafe) as caught:
        verify(VerifyRequest(destination, ("run-1",), allow_doubtful=True))
    assert [problem.what for problem in caught.value.problems] == ["gone/last-1: last.pt is missing"]


def test_the_component_returns_uris_and_fills_in_its_artifacts(
    destination: str, train: Train, artifacts: dict[str, Any]
) -> None:
    train("trial", "run-1")
    outputs = verify_checkpoint.python_func(
        **artifacts, checkpoints=destination, run="{{$.unfilled}}", job="run-1"
    )
    assert outputs == (["trial"], [f"{destination}/trial/last-1"])
    model = artifacts["model"]
    assert (model.uri, model.metadata["lineage"]) == (f"{destination}/trial/last-1", "trial")
    assert artifacts["metrics"].metadata["lineages"] == 1
    assert "<td>trial</td>" in Path(artifacts["report"].path).read_text()


@pytest.mark.parametrize(
    ("output_file", "run"),
    [
        (
            "/root/demo-2026-11-21-02-01-33-582610/verify/executor_output.json",
            "demo-2026-11-21-02-01-33-582610",
        ),
        (
            "/root/demo-2026-11-21-02-01-33-582610/inner/verify/executor_output.json",
            "demo-2026-11-21-02-01-33-582610",
        ),
        (
            "/minio/b/two-step/c6560994-25fc-4601-b7b5-e2fc66f94fe0/consume/1e6daf97-dd77-4ecc-b9dd-135b4e2e4010/o",
            "c6560994-25fc-4601-b7b5-e2fc66f94fe0",
        ),
    ],
)
def test_the_run_is_found_in_the_steps_own_command(
    monkeypatch: pytest.MonkeyPatch, output_file: str, run: str
) -> None:
    document = json.dumps({"inputs": {}, "outputs": {"outputFile": output_file}})
    monkeypatch.setattr(sys, "argv", ["main.py", "--executor_input", document])
    assert run_names("{{$.pipeline_job_uuid}}", "", "job") == ("job", run)
    assert run_names(run) == (run,)


def test_metrics_next_to_a_checkpoint_are_not_verified_in_its_place(
    destination: str, train: Train, tmp_path: Path
) -> None:
    commit = train("trial", "run-1")
    file = msgspec.structs.replace(commit.files[0], name="metrics.json")
    metrics = msgspec.structs.replace(commit, sequence=2, name="metrics", files=(file,))
    (tmp_path / "models/trial" / commit_name(2)).write_bytes(encode_commit(metrics))
    verified = verify(VerifyRequest(destination, ("run-1",)))
    assert [lineage.commit.sequence for lineage in verified] == [1]
