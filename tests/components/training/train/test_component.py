"""`train_component` under KFP's local runner, and what an image's component declares."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl, local
from kfp.local import config

from podferry.components import gpu_train, train, train_component
from podferry.components.step import DEFAULT_IMAGE
from podferry.contract.errors import InvalidSpec


@train_component(include="*.bin")
def fit(f, lr: float, epochs: int = 2) -> dict:  # type: ignore[no-untyped-def]
    """Fit a little."""
    assert len(list(f.dataset.iterdir())) == 3
    done = int(f.restored.stem.split("-")[1]) if f.restored else 0
    for step in range(done + 1, epochs + 1):
        (f.checkpoints / f"step-{step}.pt").write_text(f"{step} at {lr}")
    return {"loss": lr / epochs, "resumed": done}


@train_component
def refused(f) -> None:  # type: ignore[no-untyped-def]
    raise AssertionError(f)


@dsl.pipeline(name="fits")
def fits(uri: str, out: str, lr: float, epochs: int):
    step = fit(dataset=uri, checkpoints=out, lr=lr, epochs=epochs)
    gpu_train(step, dataset=uri, checkpoints=out, checkpoint_size="1Mi", gpus=0)


@dsl.pipeline(name="refuses")
def refuses(uri: str):
    refused(dataset=uri)


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    yield tmp_path / "root"
    config.LocalExecutionConfig.instance = None


def outputs(root: Path) -> list[dict[str, Any]]:
    found = sorted(root.rglob("executor_output.json"), key=lambda path: path.stat().st_mtime)
    return [json.loads(path.read_text())["artifacts"] for path in found]


def test_a_function_trains_resumes_and_reports(digits: Path, destination: str, root: Path) -> None:
    (digits / "notes.txt").write_text("not selected")
    fits(uri=str(digits), out=destination, lr=0.5, epochs=2)
    fits(uri=str(digits), out=destination, lr=0.5, epochs=2)
    (first, second) = [one["metrics"]["artifacts"][0]["metadata"] for one in outputs(root)]
    assert first == {"loss": 0.25, "resumed": 0}
    assert second == {"loss": 0.25, "resumed": 2}
    pages = sorted(root.rglob("report"), key=lambda path: path.stat().st_mtime)
    assert "<td>step-2</td><td>2</td>" in pages[0].read_text()
    assert "Resumed from" in pages[1].read_text()


def test_a_refusal_has_no_traceback(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="refused"):
        refuses(uri="0.1")
    said = capfd.readouterr().out
    assert "error: the dataset is 0.1, which is no URI and no path" in said
    assert "Traceback" not in said


def executor(pipeline: Any) -> dict[str, Any]:
    spec = json_format.MessageToDict(pipeline.pipeline_spec)
    (found,) = spec["deploymentSpec"]["executors"].values()
    container: dict[str, Any] = found["container"]
    return container


def test_an_image_gets_its_parameters_as_options_and_gpu_train_its_inputs() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str, out: str, lr: float, tags: list):
        train(
            image="team/trainer:7",
            command=["python", "-m", "trainer"],
            dataset=uri,
            checkpoints=out,
            parameters={"lr": lr, "batch-size": 64, "tags": tags, "run": f"x-{lr}"},
            checkpoint_size="1Gi",
            gpus=2,
        )

    container = executor(one)
    assert (container["image"], container["command"]) == ("team/trainer:7", ["python", "-m", "trainer"])
    assert container["args"] == [
        part
        for option, name in (("lr", "lr"), ("batch-size", "batch_size"), ("tags", "tags"), ("run", "run"))
        for part in (f"--{option}", f"{{{{$.inputs.parameters['{name}']}}}}")
    ]
    assert container["resources"]["accelerator"]["resourceCount"] == "2"
    spec = json_format.MessageToDict(one.pipeline_spec)
    inputs = spec["components"]["comp-train"]["inputDefinitions"]["parameters"]
    assert {name: one["parameterType"] for name, one in inputs.items()} == {
        **dict.fromkeys(("dataset", "checkpoints", "run"), "STRING"),
        "lr": "NUMBER_DOUBLE",
        "batch_size": "NUMBER_INTEGER",
        "tags": "LIST",
    }
    platform = json_format.MessageToDict(one.platform_spec)["platforms"]["kubernetes"]
    annotations = platform["deploymentSpec"]["executors"]["exec-train"]["podMetadata"]["annotations"]
    assert annotations["podferry.io/dataset"] == "$(inputs.dataset)"
    assert annotations["podferry.io/checkpoints"] == "$(inputs.checkpoints)"


def test_an_image_without_a_place_is_refused_as_by_gpu_train() -> None:
    with pytest.raises(InvalidSpec, match="neither a dataset nor a destination"):

        @dsl.pipeline(name="p")
        def one():
            train(image="team/trainer:7", command=["true"])


def test_a_function_runs_in_the_image_of_the_steps_unless_it_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(f) -> None:  # type: ignore[no-untyped-def]
        pass

    monkeypatch.delenv("PODFERRY_IMAGE", raising=False)
    images = [
        executor(one)["image"] for one in (train_component(other), train_component(other, base_image="a:1"))
    ]
    assert images == [DEFAULT_IMAGE, "a:1"]
    assert "pip install" not in os.linesep.join(executor(train_component(other))["args"])


OPTIONS = {
    "parameters: not the name of an option ('--lr'). Write letters": {"--lr": 0.1},
    "parameters: not the name of an option ('a b')": {"a b": 1},
    "parameters: not the name of an option ('class')": {"class": 1},
    "parameters: not the name of an option ('')": {"": 1},
    "parameters: not the name of an option (3)": {3: 1},
    "parameters: not the name of an option ('self')": {"self": 1},
    "parameters: 'dataset' is the same input as dataset=. Rename it; the program": {"dataset": "s3://b/y"},
    "parameters: 'a_b' is the same input as 'a-b'": {"a-b": 1, "a_b": 2},
    "parameters: not a mapping (['lr'])": ["lr"],
}


@pytest.mark.parametrize("wanted", OPTIONS)
def test_options_that_cannot_be_passed_are_refused_with_every_reason(wanted: str) -> None:
    def pipeline(uri: str) -> None:
        train(image="", command=["true"], dataset=uri, parameters=OPTIONS[wanted], name=" ")  # type: ignore[arg-type]

    with pytest.raises(InvalidSpec) as caught:
        dsl.pipeline(name="refused")(pipeline)
    name, image, option = map(str, caught.value.problems)
    assert name.startswith("name: not the name of a step (' ')")
    assert image.startswith("image: ")
    assert option.startswith(wanted)


def test_an_image_that_cannot_be_run_is_refused_with_every_reason() -> None:
    """KFP would spell a text as one word per letter."""

    def pipeline(uri: str) -> None:
        train(image="", command="python train.py", dataset=uri, parameters={"lr": 0.1, "seed": None})

    with pytest.raises(InvalidSpec) as caught:
        dsl.pipeline(name="refused")(pipeline)
    assert [problem.what for problem in caught.value.problems] == [
        "image: not the name of an image",
        "command: not a list of words",
        "parameters['seed']: KFP passes no None",
    ]
