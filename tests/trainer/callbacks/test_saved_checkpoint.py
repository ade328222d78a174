"""Which checkpoint is marked after a save, and what a mark that fails does: nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from podferry.trainer.callbacks.saved_checkpoint import mark_saved
from podferry.trainer.ferry import Ferry
from tests.trainer.callbacks.conftest import Recorder


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"weights")
    return path


@pytest.mark.parametrize(
    ("saved", "name"),
    [
        ("epoch=1-step=20.ckpt", "epoch=1-step=20.ckpt"),
        ("checkpoint-20/model.bin", "checkpoint-20"),
        ("run/checkpoint-20/model.bin", "run"),
    ],
)
def test_the_name_at_the_top_is_marked(
    saved: str, name: str, checkpoints: Path, ferry: Ferry, recorder: Recorder
) -> None:
    assert mark_saved(write(checkpoints / saved), ferry)
    assert recorder.marked == [name]


def test_the_agent_of_the_environment(
    agent: Recorder, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(checkpoints / "step-1" / "model.bin")
    monkeypatch.chdir(checkpoints.parent)
    assert mark_saved("checkpoints/step-1")
    assert agent.marked == ["step-1"]


@pytest.mark.parametrize("saved", ["checkpoints", "elsewhere", "checkpoints/missing", "s3://bucket/step-1"])
def test_other_paths_are_no_checkpoints(
    saved: str, tmp_path: Path, ferry: Ferry, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    assert not mark_saved(saved, ferry)
    assert recorder.marked == []


@pytest.mark.parametrize("variable", ["PODFERRY_AGENT", "PODFERRY_CHECKPOINTS"])
def test_without_an_agent_nothing_happens(
    variable: str, agent: Recorder, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    assert not mark_saved(write(checkpoints / "step-1.pt"))
    assert agent.marked == []


def test_a_refused_mark_is_a_warning(
    checkpoints: Path, ferry: Ferry, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.refuses = True
    with caplog.at_level(logging.WARNING, "podferry"):
        assert not mark_saved(write(checkpoints / "step-1.pt"), ferry)
    assert [record.getMessage() for record in caplog.records] == [
        "podferry did not mark the checkpoint step-1.pt: step-1.pt is torn."
    ]
