"""A training function under `ferry`: what it gets, and what is written."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from podferry.components.training.train.runner import run_training
from podferry.trainer import Ferry


@pytest.fixture
def metrics(tmp_path: Path) -> dsl.Metrics:
    return dsl.Metrics(name="metrics", uri=str(tmp_path / "metrics"), metadata={})


def test_only_numbers_become_metrics(
    digits: Path, tmp_path: Path, metrics: dsl.Metrics, capsys: pytest.CaptureFixture[str]
) -> None:
    def fit(f: Ferry, lr: float) -> dict[str, Any]:
        assert f.checkpoints is None
        return {"loss": lr, "epochs": 2, "name": "digits", "part": Fraction(1, 4)}

    report = tmp_path / "report"
    run_training(fit, {"dataset": str(digits), "checkpoints": ""}, {"lr": 0.5}, str(report), metrics)
    assert metrics.metadata == {"loss": 0.5, "epochs": 2.0, "part": 0.25}
    assert "name is no metric: it is no number (str)" in capsys.readouterr().out
    assert "Agent: process" in report.read_text()
    assert "No destination for checkpoints was requested" in report.read_text()


def test_a_function_may_return_nothing(digits: Path, tmp_path: Path, metrics: dsl.Metrics) -> None:
    run_training(lambda f: None, {"dataset": str(digits)}, {}, str(tmp_path / "report"), metrics)
    assert metrics.metadata == {}


def test_a_number_without_a_name_is_no_metric(
    digits: Path, tmp_path: Path, metrics: dsl.Metrics, capsys: pytest.CaptureFixture[str]
) -> None:
    run_training(lambda f: 0.5, {"dataset": str(digits)}, {}, str(tmp_path / "report"), metrics)
    assert metrics.metadata == {}
    assert "no metrics: the function returned no dict (float)" in capsys.readouterr().out


def test_an_exception_of_the_function_is_its_own(digits: Path, tmp_path: Path, metrics: dsl.Metrics) -> None:
    def fit(f: Ferry) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_training(fit, {"dataset": str(digits)}, {}, str(tmp_path / "report"), metrics)
    assert not (tmp_path / "report").exists()


def test_an_input_that_the_step_lacks_is_named(digits: Path, tmp_path: Path, metrics: dsl.Metrics) -> None:
    def fit(f: Ferry) -> None:
        (f.checkpoints / "epoch-1.pt").write_bytes(b"weights")  # type: ignore[operator]

    with pytest.raises(TypeError) as caught:
        run_training(fit, {"dataset": str(digits), "checkpoints": ""}, {}, str(tmp_path / "report"), metrics)
    assert caught.value.__notes__ == ["f.checkpoints is None: the step was given no checkpoints="]


def test_a_checkpoint_that_is_torn_ends_the_step_with_its_code(
    tmp_path: Path, destination: str, metrics: dsl.Metrics, capsys: pytest.CaptureFixture[str]
) -> None:
    def fit(f: Ferry) -> None:
        assert f.checkpoints is not None
        (f.checkpoints / "epoch-1.npz").write_bytes(b"PK\3\4 torn")

    with pytest.raises(SystemExit) as ended:
        run_training(fit, {"checkpoints": destination}, {}, str(tmp_path / "report"), metrics)
    assert ended.value.code == 74
    assert "error: not durable: epoch-1" in capsys.readouterr().out
