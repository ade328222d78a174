"""The example's command line; `tests/components/test_local_run.py` runs the pipeline itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from podferry.pipelines import train


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    train.main()


def test_compiles_into_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call(monkeypatch, "--compile", str(tmp_path / "train.yaml"))
    spec, platform = yaml.safe_load_all((tmp_path / "train.yaml").read_text())
    assert list(spec["root"]["dag"]["tasks"]) == ["cache", "dataset", "train", "verify-checkpoint"]
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert executors["exec-train"]["podMetadata"]["annotations"] == {
        "podferry.io/checkpoint-size": "64Mi",
        "podferry.io/checkpoints": "$(inputs.checkpoints)",
        "podferry.io/dataset": "$(inputs.dataset)",
        "podferry.io/secret": "podferry-store",
        "podferry.io/shm-size": "1Gi",
    }


def test_both_places_are_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call(monkeypatch, "s3://only/one")
    assert "give the DATASET and the CHECKPOINTS" in capsys.readouterr().err
