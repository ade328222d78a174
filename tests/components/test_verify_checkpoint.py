"""The step `verify_checkpoint`: what is green, and everything that must be red."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from podferry.components.verify_checkpoint.component import verify_checkpoint
from podferry.components.verify_checkpoint.runner import Question, Unsafe, own_runs, verify
from podferry.contract.commit import Commit, commit_name

Train = Callable[..., Commit]


def test_the_newest_checkpoint_of_each_lineage_of_the_run(
    destination: str, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train("trial-1", "run-1")
    train("trial-1", "run-1", step=2)
    train("trial-2", "run-1")
    train("other", "run-0")
    found = verify(Question(destination, ("run-1", "job-1")))
    assert [(one.lineage, one.commit.step) for one in found] == [("trial-1", 2), ("trial-2", 1)]
    assert found[0].uri == f"{destination}/trial-1/last-2"
    assert "whole" in capsys.readouterr().out


def test_every_flaw_of_every_lineage_is_told(destination: str, train: Train, tmp_path: Path) -> None:
    train("gone", "run-1")
    train("short", "run-1")
    train("torn", "run-1")
    models = tmp_path / "models"
    (models / "gone/last-1/last.pt").unlink()
    (models / "short/last-1/last.pt").write_bytes(b"we")
    (models / "torn" / commit_name(1)).write_bytes(b"{")
    with pytest.raises(Unsafe) as caught:
        verify(Question(destination, ("run-1",)))
    gone, short, torn = (problem.what for problem in caught.value.problems)
    assert gone == "gone/last-1: last.pt is missing"
    assert short == "short/last-1: last.pt has the wrong size"
    assert torn.startswith("torn: its newest commit cannot be read: ")
    assert all(problem.remedy for problem in caught.value.problems)


def test_only_a_full_look_finds_a_changed_byte(destination: str, train: Train, tmp_path: Path) -> None:
    train("trial", "run-1")
    (tmp_path / "models/trial/last-1/last.pt").write_bytes(b"wEights")
    assert verify(Question(destination, ("run-1",)))
    with pytest.raises(Unsafe, match=r"last\.pt is damaged"):
        verify(Question(destination, ("run-1",), full=True))


def test_a_full_look_at_whole_data_is_green(destination: str, train: Train) -> None:
    train("trial", "run-1")
    train("empty", "run-1", content=b"")
    assert len(verify(Question(destination, ("run-1",), full=True))) == 2


def test_a_training_that_committed_nothing_is_red(destination: str, train: Train, tmp_path: Path) -> None:
    train("trial", "run-1")
    private = tmp_path / "models/fresh/.podferry"
    private.mkdir(parents=True)
    (private / "writer.json").write_text(json.dumps({"writer": "w1", "run": "run-1"}))
    with pytest.raises(Unsafe) as caught:
        verify(Question(destination, ("run-1",)))
    assert [problem.what for problem in caught.value.problems] == ["fresh has no committed checkpoint"]


def test_a_resumed_training_that_had_nothing_left_counts_where_it_is_asked_to(
    destination: str, train: Train, tmp_path: Path
) -> None:
    train("trial", "run-1")
    (tmp_path / "models/trial/.podferry/writer.json").write_text(json.dumps({"writer": "w2", "run": "run-2"}))
    with pytest.raises(Unsafe, match=r"another run's.*any_run"):
        verify(Question(destination, ("run-2",)))
    assert verify(Question(destination, ("run-2",), lineages=("trial",)))
    assert verify(Question(destination, ("run-2",), any_run=True))


def test_named_lineages_are_looked_at_alone(destination: str, train: Train) -> None:
    train("trial", "run-0")
    train("other", "run-1")
    (one,) = verify(Question(destination, ("run-1",), lineages=("trial", "trial")))
    assert one.lineage == "trial"
    with pytest.raises(Unsafe, match="missing has no committed checkpoint"):
        verify(Question(destination, lineages=("missing",)))
    with pytest.raises(Unsafe, match="not a plain path segment"):
        verify(Question(destination, lineages=("../other",)))


def test_a_run_without_any_lineage_is_red(destination: str, train: Train) -> None:
    with pytest.raises(Unsafe, match=r"this run trained no lineage.*holds 0 lineages"):
        verify(Question(destination, ("run-1",)))
    with pytest.raises(Unsafe, match="no lineage at the destination"):
        verify(Question(destination, any_run=True))
    train("trial", "run-0")
    with pytest.raises(Unsafe, match=r"this run trained no lineage.*holds 1 lineages.*run-1"):
        verify(Question(destination, ("run-1",)))


def test_a_commit_outside_kfp_is_no_run_at_all(destination: str, train: Train) -> None:
    train("trial", None)
    with pytest.raises(Unsafe, match=r"use podferry\.components\.verify"):
        verify(Question(destination))


def test_the_function_hands_on_places(destination: str, train: Train) -> None:
    train("trial", "run-1")
    outputs = verify_checkpoint.python_func(checkpoints=destination, run="{{$.unfilled}}", job="run-1")
    assert outputs == (["trial"], [f"{destination}/trial/last-1"])


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
    assert own_runs("{{$.pipeline_job_uuid}}", "", "job") == ("job", run)
    assert own_runs(run) == (run,)
