"""`gpu_train`: the platform specification, and the errors found at compile time."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import gpu_train
from podferry.components.training.gpu_train.validate import SAMPLES
from podferry.contract.annotation_keys import KEYS
from podferry.contract.annotations import read_annotations
from podferry.contract.errors import InvalidSpec
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.pod_owner import kfp_inputs_of, pod_owner_of, variables_of

Pod = dict[str, Any]
PipelineBody = Callable[..., Any]
REFERENCE = f"s3://data/digits#sha256={'0' * 64}&bytes=100&files=1"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def freeze(uri: str, data: dsl.Output[dsl.Dataset]) -> NamedTuple(
    "O", [("reference", str), ("files", float)]
):
    return (uri, 1.0)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(uri: str = "", uri2: str = "", lr: float = 0.1, data: dsl.Input[dsl.Dataset] = None) -> str:
    return uri


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def learn(dataset: str, checkpoints: str, outputs: str = "") -> str:
    return dataset


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count(dataset: int, checkpoints: str, outputs: str = "") -> str:
    return checkpoints


def compiled(body: PipelineBody) -> Any:
    """A pipeline that runs `freeze`, then `body(frozen, bucket)`."""

    @dsl.pipeline(name="p")
    def pipeline(bucket: str = "b") -> None:
        body(freeze(uri="u"), bucket)

    return pipeline


def annotations(body: PipelineBody, executor: str = "exec-fit") -> dict[str, str]:
    """The annotations of a compiled task."""
    platform = json_format.MessageToDict(compiled(body).platform_spec)
    found = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"][executor]
    texts: dict[str, str] = found["podMetadata"]["annotations"]
    return texts


def executor_and_task(body: PipelineBody) -> tuple[dict[str, Any], dict[str, Any]]:
    """The executor's container and the task of `fit`, as compiled."""
    spec = json_format.MessageToDict(compiled(body).pipeline_spec)
    container = spec["deploymentSpec"]["executors"]["exec-fit"]["container"]
    return container, spec["root"]["dag"]["tasks"]["fit"]


@contextmanager
def refused() -> Iterator[list[str]]:
    """Collects the problems that the block must raise."""
    problems: list[str] = []
    with pytest.raises(InvalidSpec) as caught:
        yield problems
    problems += map(str, caught.value.problems)


def test_static_settings_become_annotations_and_resources() -> None:
    def body(frozen: Any, _: Any) -> None:
        gpu_train(
            fit(),
            dataset=REFERENCE,
            checkpoints="s3://models/$(pipeline)/$(inputs.lr)",
            checkpoint_size="2Gi",
            keep_local=2,
            shm_size="8Gi",
            secret="s3",
            memory="24Gi",
            gpus=2,
        )

    assert annotations(body) == {
        "podferry.io/dataset": REFERENCE,
        "podferry.io/checkpoints": "s3://models/$(pipeline)/$(inputs.lr)",
        "podferry.io/checkpoint-size": "2Gi",
        "podferry.io/keep-local": "2",
        "podferry.io/shm-size": "8Gi",
        "podferry.io/secret": "s3",
    }
    container, _ = executor_and_task(body)
    resources = container["resources"]
    assert resources["accelerator"]["resourceType"] == "nvidia.com/gpu"
    assert resources["accelerator"]["resourceCount"] == "2"
    assert resources["resourceMemoryLimit"] == "24Gi"


def test_outputs_become_the_inputs_that_carry_them() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        task = fit(uri=frozen.outputs["reference"], uri2=f"s3://{bucket}/x")
        gpu_train(task, dataset=frozen.outputs["reference"], checkpoints=f"s3://{bucket}/x")

    assert annotations(body) == {
        "podferry.io/dataset": "$(inputs.uri)",
        "podferry.io/checkpoints": "$(inputs.uri2)",
    }


def test_a_channel_inside_a_text_becomes_the_input_too() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(uri=bucket), dataset=frozen_uri, checkpoints=f"s3://{bucket}/$(task)")

    frozen_uri = REFERENCE
    assert annotations(body)["podferry.io/checkpoints"] == "s3://$(inputs.uri)/$(task)"


def test_items_of_a_loop_are_inputs_like_others() -> None:
    def body(frozen: Any, _: Any) -> None:
        with dsl.ParallelFor(["s3://a/x", "s3://b/x"]) as item:
            gpu_train(fit(uri=item), checkpoints=item, lineage="$(task)-$(inputs-hash)")

    assert annotations(body)["podferry.io/checkpoints"] == "$(inputs.uri)"


def test_two_tasks_of_one_component_have_their_own() -> None:
    def body(frozen: Any, _: Any) -> None:
        gpu_train(fit(uri="a"), dataset="s3://a/x")
        gpu_train(fit(uri="b"), dataset="imagenet", gpus=0)

    assert annotations(body)["podferry.io/dataset"] == "s3://a/x"
    assert annotations(body, "exec-fit-2") == {"podferry.io/dataset": "imagenet"}


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
    for what in ("podferry.io/checkpoint-path", "podferry.io/shm-size", "gpus:", "memory:", "accelerator:"):
        assert what in said
    assert "podferry.io/dataset: no input of this name has a value" in said
    assert "podferry.io/restore is set without podferry.io/checkpoints" in said


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


def test_inputs_named_like_a_location_are_taken_unless_given() -> None:
    def taken(frozen: Any, bucket: Any) -> None:
        gpu_train(learn(dataset=frozen.outputs["reference"], checkpoints="s3://a/b", outputs=bucket))

    def overridden(frozen: Any, bucket: Any) -> None:
        step = learn(dataset="s3://a/b", checkpoints="s3://a/c", outputs=bucket)
        gpu_train(step, dataset=REFERENCE, checkpoints=bucket, outputs="")

    assert annotations(taken, "exec-learn") == {
        "podferry.io/dataset": "$(inputs.dataset)",
        "podferry.io/checkpoints": "$(inputs.checkpoints)",
        "podferry.io/outputs": "$(inputs.outputs)",
    }
    assert annotations(overridden, "exec-learn") == {
        "podferry.io/dataset": REFERENCE,
        "podferry.io/checkpoints": "$(inputs.outputs)",
    }


def test_only_inputs_with_a_location_are_taken() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(count(dataset=3, checkpoints="s3://a/b"))

    taken = annotations(body, "exec-count")
    assert taken.keys() == {"podferry.io/checkpoints"}


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


def test_resources_may_be_dynamic_and_memory_takes_kubernetes_quantities() -> None:
    def dynamic(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(), dataset=REFERENCE, memory=frozen.outputs["reference"], gpus=bucket)

    container, task = executor_and_task(dynamic)
    assert "pipelinechannel--freeze-reference" in container["resources"]["resourceMemoryLimit"]
    assert "pipelinechannel--freeze-reference" in task["inputs"]["parameters"]
    container, _ = executor_and_task(lambda f, b: gpu_train(fit(), dataset=REFERENCE, memory="1.5Gi", gpus=0))
    assert container["resources"]["resourceMemoryLimit"] == str(3 << 29)
    assert "accelerator" not in container["resources"]


def test_every_key_has_a_valid_sample() -> None:
    assert list(SAMPLES) == list(KEYS)
    spec = read_annotations({KEYS[name].annotation: text for name, text in SAMPLES.items()})
    assert spec is not None
    assert len(spec.datasets) == 1


def test_annotations_resolve_in_a_pod_as_kfp_creates_it(recorded: Callable[[str], Pod]) -> None:
    def body(frozen: Any, bucket: Any) -> None:
        task = fit(uri=f"s3://{bucket}/data", uri2=bucket)
        gpu_train(task, dataset=f"s3://{bucket}/data", checkpoints=f"s3://models-{bucket}/x", secret="s3")

    spec = resolved(recorded("executor-fstring-annotated"), annotations(body))
    # The recorded inputs: uri2 is "real", and uri an f-string of it that the launcher had not filled in yet.
    assert spec.datasets[0].reference == "s3://real/data/u3/x.bin"
    assert spec.checkpoints.uri == "s3://models-real/x"


def test_an_artifact_resolves_to_the_reference_in_its_metadata(recorded: Callable[[str], Pod]) -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(data=frozen.outputs["data"]), dataset=frozen.outputs["data"])

    pod = recorded("executor-annotated-emptydir")
    (main,) = (one for one in pod["spec"]["containers"] if one["name"] == "main")
    at = main["command"].index("--executor_input") + 1
    key = '"metadata":{'
    assert key in main["command"][at]
    main["command"][at] = main["command"][at].replace(key, f'{key}"{REFERENCE_KEY}":"{REFERENCE}",', 1)
    with pytest.warns(UserWarning, match="is an artifact"):
        found = annotations(body)
    assert resolved(pod, found).datasets[0].reference == REFERENCE


def resolved(pod: Pod, found: dict[str, str]) -> Any:
    """The spec that a webhook reads from a recorded pod with these annotations."""
    pod["metadata"]["annotations"] |= found
    variables = variables_of(pod_owner_of(pod, "team"), kfp_inputs_of(pod))
    return read_annotations(pod["metadata"]["annotations"], variables)


def test_a_path_may_be_a_path_object() -> None:
    found = annotations(lambda f, b: gpu_train(fit(), dataset=REFERENCE, dataset_path=Path("/data/in")))
    assert found["podferry.io/dataset-path"] == "/data/in"


def test_several_datasets_have_their_own_settings() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(
            fit(uri=frozen.outputs["reference"], uri2=bucket),
            dataset={"": frozen.outputs["reference"], "test": bucket},
            dataset_size={"test": "1Gi"},
            include={"test": ["*.jpg", "*.png"]},
            shard="0/2",
        )

    assert annotations(body) == {
        "podferry.io/dataset": "$(inputs.uri)",
        "podferry.io/dataset.test": "$(inputs.uri2)",
        "podferry.io/dataset-size.test": "1Gi",
        "podferry.io/include.test": "*.jpg\n*.png",
        "podferry.io/shard": "0/2",
    }
    _, task = executor_and_task(body)
    assert not task["cachingOptions"].get("enableCache", False), "one of them is not frozen"


def test_a_setting_of_a_missing_dataset_is_refused() -> None:
    with refused() as problems:
        compiled(lambda f, b: gpu_train(fit(), dataset={"train": REFERENCE}, include={"trian": "*.jpg"}))
    assert any("include.trian" in problem for problem in problems)
