"""What `gpu_train` refuses when a pipeline is compiled."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from typing import Any

from kfp import dsl

from podferry.components import gpu_train
from podferry.components.training.gpu_train.validate import SAMPLES
from podferry.contract.annotation_keys import KEYS
from podferry.contract.annotations import read_annotations
from tests.support.configured_training import REFERENCE, compiled, fit, learn, refused


def test_what_no_input_can_carry_is_refused_with_a_remedy() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(uri="x"), dataset=frozen.outputs["data"], lineage=dsl.PIPELINE_JOB_ID_PLACEHOLDER)

    with refused() as problems:
        compiled(body)
    assert len(problems) == 2
    assert "dataset: no input of the task carries the artifact (freeze.outputs['data'])" in problems[0]
    assert "Pass the output 'reference'" in problems[0]
    assert "{{$.pipeline_job_uuid}}" in problems[1]
    assert not any("{{channel:" in problem for problem in problems)


def test_all_errors_are_reported_at_once() -> None:
    def body(frozen: Any, _: Any) -> None:
        gpu_train(
            fit(uri="x"),
            dataset="$(inputs.dta)",
            check_point_size="2Gi",
            checkpoint_path="relative",
            shm_size="lots",
            restore="AUTO",
            gpus="many",
            memory="1 GB",
            accelerator="not a resource",
        )

    with refused() as problems:
        compiled(body)
    said = "\n".join(problems)
    assert "check_point_size: gpu_train has no such setting" in said
    assert "Did you mean 'checkpoint_size'?" in said
    for what in ("checkpoint_path:", "shm_size:", "gpus:", "memory:", "accelerator:"):
        assert what in said
    assert "dataset: no input of this name has a value" in said
    assert "restore is set without checkpoints" in said
    assert "podferry.io/" not in said


def test_the_nearest_keyword_may_be_one_of_a_resource() -> None:
    with refused() as problems:
        compiled(
            lambda frozen, bucket: gpu_train(learn(dataset="s3://d/x", checkpoints=""), gpu=1, memry="1Gi")
        )
    assert [problem.split("Did you mean ")[1] for problem in problems] == ["'gpus'?", "'memory'?"]


def test_a_task_in_place_of_its_output_is_refused() -> None:
    with refused() as problems:
        compiled(lambda frozen, bucket: gpu_train(fit(), dataset=frozen, gpus=0))
    assert problems[0].startswith("dataset: a task, not an output of it (freeze). Pass one of its outputs")


def test_a_second_call_on_a_step_is_refused() -> None:
    """It could not replace the first: KFP would keep the two GPUs."""

    def body(frozen: Any, bucket: Any) -> None:
        step = gpu_train(learn(dataset="s3://d/x", checkpoints=""), gpus=2)
        gpu_train(step, gpus=0)

    with refused() as problems:
        compiled(body)
    assert "gpu_train is called twice on one step (learn)" in problems[0]


def test_a_constant_that_an_input_carries_is_validated() -> None:
    with refused() as problems:
        compiled(lambda frozen, bucket: gpu_train(fit(uri="s4//x"), dataset="$(inputs.uri)"))
    assert "neither a URI nor a declared dataset" in problems[0]


def test_a_relative_path_is_no_bucket() -> None:
    with refused() as problems:
        compiled(lambda frozen, bucket: gpu_train(fit(uri="./data"), dataset="$(inputs.uri)"))
    assert problems[0].endswith("Write a URI, or an absolute path.")


def test_a_refused_value_does_not_make_others_wrong() -> None:
    def body(frozen: Any, _: Any) -> None:
        gpu_train(fit(uri="x"), checkpoints=frozen.outputs["data"], checkpoint_size="1Gi")

    with refused() as problems:
        compiled(body)
    assert len(problems) == 1


def test_a_request_for_nothing_is_refused() -> None:
    with refused() as problems:
        compiled(lambda frozen, bucket: gpu_train(fit(uri="x")))
    assert "neither a dataset nor a destination" in problems[0]


def test_a_pipeline_is_not_a_step() -> None:
    @dsl.pipeline(name="inner")
    def inner() -> None:
        fit(uri="x")

    with refused() as problems:
        compiled(lambda frozen, bucket: gpu_train(inner(), dataset="s3://a/b"))
    assert "gpu_train needs a step" in problems[0]


def test_a_setting_of_a_missing_dataset_is_refused() -> None:
    with refused() as problems:
        compiled(lambda f, b: gpu_train(fit(), dataset={"train": REFERENCE}, include={"trian": "*.jpg"}))
    assert any("include.trian" in problem for problem in problems)


def test_every_key_has_a_valid_sample() -> None:
    assert list(SAMPLES) == list(KEYS)
    spec = read_annotations({KEYS[name].annotation: text for name, text in SAMPLES.items()})
    assert spec is not None
    assert len(spec.datasets) == 1
