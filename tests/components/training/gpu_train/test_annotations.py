"""The annotations that `gpu_train` gives a task, and how a webhook reads them."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from podferry.components import gpu_train
from podferry.contract.annotations import read_annotations
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.pod_owner import kfp_inputs_of, pod_owner_of, variables_of
from tests.support.configured_training import (
    REFERENCE,
    Pod,
    annotations,
    count,
    executor_and_task,
    fit,
    learn,
)


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


def test_a_channel_next_to_a_variable_gets_an_input_of_its_own() -> None:
    """The webhook expands no variables in the value of an input."""

    def body(frozen: Any, bucket: Any) -> None:
        location = f"s3://{bucket}/$(task)/{frozen.outputs['reference']}/{bucket}"
        gpu_train(fit(), dataset=REFERENCE, checkpoints=location, lineage=f"{bucket}-$(inputs.lr)")

    found = annotations(body)
    first, second = (f"$(inputs.podferry_checkpoints__PART{number})" for number in (1, 2))
    assert found["podferry.io/checkpoints"] == f"s3://{first}/$(task)/{second}/{first}"
    assert found["podferry.io/lineage"] == "$(inputs.podferry_lineage__PART1)-$(inputs.lr)"
    _, task = executor_and_task(body)
    given = task["inputs"]["parameters"]
    assert given["podferry_checkpoints__PART1"] == {"componentInputParameter": "bucket"}
    assert given["podferry_checkpoints__PART2"]["taskOutputParameter"]["producerTask"] == "freeze"
    # KFP's cache compares inputs: the entire text is one of them, as it is for constants.
    assert given["podferry_checkpoints"]["runtimeValue"]["constant"].startswith(
        "s3://$(inputs.podferry_check"
    )


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
