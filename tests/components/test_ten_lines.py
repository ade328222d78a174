"""The lines that a pipeline's author writes, word for word: on a laptop, and compiled."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import local
from kfp.local import config

from tests.support.compiled import check_golden

LINES = """
from kfp import dsl

from podferry.components import dataset, gpu_train, verify_checkpoint

IMAGE = "team/train:1-python3.12"


@dsl.component(base_image=IMAGE)
def train(dataset: str, checkpoints: str, lr: float):
    from mine import fit
    from podferry.trainer import ferry
    with ferry(dataset, checkpoints) as f:            # leaving: durable, or red
        fit(f.dataset, f.checkpoints, f.restored, lr)

@dsl.pipeline
def resnet(uri: str, out: str, lr: float = 0.1):
    data = dataset(uri, secret="s3", fits="64Gi")
    step = train(dataset=data.outputs["reference"], checkpoints=out, lr=lr)
    gpu_train(step, gpus=1, memory="16Gi", secret="s3")
    verify_checkpoint(of=step, secret="s3")
"""
MINE = """
def fit(dataset, checkpoints, restored, lr):
    assert len(list(dataset.iterdir())) == 3
    if restored is None:
        (checkpoints / "step-1.tmp").write_text(f"weights at {lr}")
        (checkpoints / "step-1.tmp").rename(checkpoints / "step-1.pt")
    else:
        assert restored.read_text() == f"weights at {lr}"
        print("resumed")
"""


@pytest.fixture
def resnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The pipeline, from a file next to the module that trains."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "pipeline.py").write_text(LINES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    yield runpy.run_path(str(tmp_path / "pipeline.py"))["resnet"]
    config.LocalExecutionConfig.instance = None


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
def test_they_run_on_a_laptop_and_resume(
    resnet: Any, digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    resnet(uri=str(digits), out=destination)
    assert "resumed" not in capfd.readouterr().out
    resnet(uri=str(digits), out=destination)
    said = capfd.readouterr().out
    assert "resumed" in said
    assert "podferry: an agent of this process" in said
    (commit,) = Path(destination[7:]).glob("*/.podferry/commits/*")
    assert commit.name == "000000000001.json"


def test_they_compile_to_a_pod_that_the_webhook_injects(resnet: Any, tmp_path: Path) -> None:
    check_golden(resnet, Path(__file__).parent / "ten_lines.yaml", tmp_path)
    platform = json_format.MessageToDict(resnet.platform_spec)["platforms"]["kubernetes"]
    annotations = platform["deploymentSpec"]["executors"]["exec-train"]["podMetadata"]["annotations"]
    assert annotations == {
        "podferry.io/dataset": "$(inputs.dataset)",
        "podferry.io/checkpoints": "$(inputs.checkpoints)",
        "podferry.io/secret": "s3",
    }


SWEEP = (
    LINES
    + """

@dsl.pipeline
def sweep(uri: str, out: str):
    data = dataset(uri)
    with dsl.ParallelFor([0.1, 0.2]) as lr:
        train(dataset=data.outputs["reference"], checkpoints=out, lr=lr)
"""
)


@pytest.mark.usefixtures("resnet")
def test_the_loops_item_in_place_of_the_dataset_is_named(
    tmp_path: Path, digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.py").write_text(SWEEP)
    with pytest.raises(RuntimeError):
        runpy.run_path(str(tmp_path / "sweep.py"))["sweep"](uri=str(digits), out=destination)
    said = capfd.readouterr().out
    assert "the dataset is 0.1, which is no URI and no path" in said
    assert "KFP's local runner replaces outputs inside ParallelFor" in said
    assert not list(Path(destination[7:]).iterdir())
