"""The step `restore_point`: which checkpoint it finds, and what it adds to a pipeline."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import gpu_train, restore_point
from podferry.components.checkpoints.restore_point.component import restore_point as component
from podferry.components.checkpoints.restore_point.runner import find
from podferry.components.trained_task.locate import TrainedPlace
from podferry.contract.destination.commit import Commit
from podferry.contract.errors import InvalidSpec, NotFound
from tests.support.kfp_driver import CompiledPipeline

Train = Callable[..., Commit]


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(checkpoints: str, lr: float = 0.1):
    print(checkpoints, lr)


def test_the_newest_sure_checkpoint_with_all_its_files(
    destination: str, train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (1, 2, 3):
        train("trial", "run-1", step=step)
    train("trial", "run-1", step=4, doubt="optimizer.pt is missing")
    shutil.rmtree(tmp_path / "models/trial/last-3")
    found = find(TrainedPlace(destination, ("trial",)))
    assert (found.uri, found.lineage, found.name) == (f"{destination}/trial/last-2", "trial", "last")
    assert found.commit.step == 2
    said = capsys.readouterr().out
    assert "passed over: last: doubtful: optimizer.pt is missing" in said
    assert "passed over: last: last.pt is missing" in said


def test_without_a_sure_one_it_fails(
    destination: str, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train("trial", "run-1", doubt="optimizer.pt is missing")
    with pytest.raises(NotFound, match="is proven complete"):
        find(TrainedPlace(destination, ("trial",)))
    with pytest.raises(NotFound, match="there is no checkpoint to restore"):
        find(TrainedPlace(destination, ("other", "elsewhere")))
    with pytest.raises(InvalidSpec, match="not a plain path segment"):
        find(TrainedPlace(destination, ("../other",)))
    with pytest.raises(SystemExit):
        component.python_func(checkpoints=destination, lineage="other")
    assert "error: there is no checkpoint to restore" in capsys.readouterr().out


def test_the_lineage_of_ferry_counts_if_the_pod_was_not_injected(destination: str, train: Train) -> None:
    train("by-ferry", "run-1")
    place = TrainedPlace(destination, ("by-webhook", "by-ferry"))
    assert find(place).lineage == "by-ferry"


def test_it_runs_after_the_training_and_imports_a_model() -> None:
    @dsl.pipeline(name="p")
    def pipeline(out: str) -> None:
        step = fit(checkpoints=out)
        gpu_train(step, checkpoints=out, gpus=0, secret="store")
        point = restore_point(of=step)
        assert set(point.outputs) == {"uri", "lineage", "name", "model"}

    compiled = CompiledPipeline(pipeline, {"out": "s3://o/k"})
    tasks = compiled.spec["root"]["dag"]["tasks"]
    assert tasks["restore-point"]["dependentTasks"] == ["fit"]
    [given] = compiled.inputs("restore-point")["parameterValues"]["of"]
    assert given["settings"]["checkpoints"] == "$(inputs.checkpoints)"
    assert tasks["import-checkpoint"]["dependentTasks"] == ["restore-point"]
    found = compiled.inputs("import-checkpoint", {"restore-point.uri": "s3://o/k/last-1"})
    # KFP's backend fails on an importer whose URI is an output of a step.
    importer = compiled.spec["components"]["comp-import-checkpoint"]["dag"]["tasks"]["importer"]
    assert importer["inputs"]["parameters"] == {"uri": {"componentInputParameter": "uri"}}
    assert found["parameterValues"] == {"uri": "s3://o/k/last-1"}
    platform = compiled.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    [volume] = platform["exec-restore-point"]["secretAsVolume"]
    assert volume["secretName"] == "store"
    assert "system.Model" in json.dumps(compiled.spec["deploymentSpec"]["executors"]["exec-importer"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"checkpoints": "s3://o/k"}, "give either of= or lineage="),
        ({"lineage": "trial"}, "the destination is missing"),
    ],
)
def test_it_needs_one_lineage_and_a_destination(words: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidSpec, match=problem):
        restore_point(**words)


def test_a_lineage_by_name_needs_no_training() -> None:
    @dsl.pipeline(name="p")
    def pipeline(out: str) -> None:
        restore_point(out, lineage="digits-a").after(fit(checkpoints=out))

    tasks = json_format.MessageToDict(pipeline.pipeline_spec)["root"]["dag"]["tasks"]
    assert tasks["restore-point"]["inputs"]["parameters"]["lineage"]["runtimeValue"]["constant"] == "digits-a"
    assert tasks["restore-point"]["dependentTasks"] == ["fit"]
