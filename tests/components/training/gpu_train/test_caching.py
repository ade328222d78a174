"""Which trainings KFP's cache may answer."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from typing import Any

import pytest
from kfp import dsl

from podferry.components import gpu_train
from tests.support.configured_training import REFERENCE, PipelineBody, executor_and_task, fit


@pytest.mark.parametrize(
    ("body", "cached"),
    [
        (lambda f, b: gpu_train(fit(uri=f.outputs["reference"]), dataset=f.outputs["reference"]), True),
        (lambda f, b: gpu_train(fit(uri=REFERENCE), dataset="$(inputs.uri)"), True),
        (lambda f, b: gpu_train(fit(uri=f.outputs["reference"]), dataset="$(inputs.uri)"), True),
        (lambda f, b: gpu_train(fit(), dataset=f.outputs["reference"]), True),
        (lambda f, b: gpu_train(fit(), dataset=b), False),
        (lambda f, b: gpu_train(fit(uri="s3://a/b"), dataset="$(inputs.uri)"), False),
        (lambda f, b: gpu_train(fit(uri=b), dataset=b), False),
        (lambda f, b: gpu_train(fit(), dataset=REFERENCE), True),
        (lambda f, b: gpu_train(fit(), dataset="s3://a/b"), False),
        (lambda f, b: gpu_train(fit(), checkpoints="s3://a/b"), True),
    ],
)
def test_training_is_cached_only_if_a_parameter_tracks_the_data(body: PipelineBody, cached: bool) -> None:
    _, task = executor_and_task(body)
    assert task["cachingOptions"].get("enableCache", False) is cached
    # The client's enable_caching=True overrides the option, and not that the inputs differ.
    runs = dict.fromkeys([] if cached else ["podferry_run"], constant(dsl.PIPELINE_JOB_ID_PLACEHOLDER))
    inputs = task.get("inputs", {}).get("parameters", {})
    assert {name: inputs[name] for name in inputs if name == "podferry_run"} == runs


def constant(text: str) -> dict[str, Any]:
    """An input with this value, as compiled."""
    return {"runtimeValue": {"constant": text}}


def test_an_artifact_makes_a_training_run_always_which_is_said() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(data=frozen.outputs["data"]), dataset=frozen.outputs["data"])

    with pytest.warns(UserWarning, match="fit: the input data is an artifact .* KFP's cache never answers"):
        _, task = executor_and_task(body)
    assert "enableCache" not in task["cachingOptions"]


def test_a_location_that_only_an_annotation_names_is_an_input_too() -> None:
    """Otherwise KFP's cache answers the training for another destination."""

    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(), dataset={"": REFERENCE, "test": "imagenet"}, checkpoints="s3://models/$(task)")

    _, task = executor_and_task(body)
    assert task["inputs"]["parameters"] == {
        "podferry_dataset": constant(REFERENCE),
        "podferry_dataset__test": constant("imagenet"),
        "podferry_checkpoints": constant("s3://models/$(task)"),
        "podferry_run": constant(dsl.PIPELINE_JOB_ID_PLACEHOLDER),
    }
