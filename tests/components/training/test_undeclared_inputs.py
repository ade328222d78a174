"""Inputs that a task's component does not declare: as every supported version of kfp compiles them.

`tests/components/test_kfp_versions.py` runs this file with each of them.
"""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import gpu_train
from podferry.components.training.gpu_train.undeclared_inputs import add_undeclared_input
from podferry.contract.annotations import read_annotations
from podferry.contract.kfp_inputs import KfpInputs
from podferry.contract.pod_owner import kfp_inputs_of, pod_owner_of, variables_of

REFERENCE = f"s3://data/digits#sha256={'0' * 64}&bytes=100&files=1"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def freeze(uri: str) -> str:
    return uri


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def function(lr: float = 0.1) -> str:
    return str(lr)


@dsl.container_component
def container(lr: float = 0.1) -> dsl.ContainerSpec:
    return dsl.ContainerSpec("acme/train:1", ["train"], ["--lr", lr])


def spec_and_annotations(pipeline: Any, executor: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The compiled pipeline, and the annotations of a task."""
    platform = json_format.MessageToDict(pipeline.platform_spec)["platforms"]["kubernetes"]
    metadata = platform["deploymentSpec"]["executors"][executor]["podMetadata"]
    return json_format.MessageToDict(pipeline.pipeline_spec), metadata["annotations"]


@pytest.mark.parametrize("component", [function, container])
def test_unchanged_components_of_others_train(
    component: Any, recorded: Callable[[str], dict[str, Any]]
) -> None:
    @dsl.pipeline(name="p")
    def pipeline(out: str, secret: str, endpoint: str) -> None:
        gpu_train(
            component(),
            dataset=freeze(uri="u").output,
            checkpoints=f"s3://{out}/models",
            secret=secret,
            endpoint=endpoint,
        )

    spec, annotations = spec_and_annotations(pipeline, f"exec-{component.name}")
    assert annotations == {
        "podferry.io/dataset": "$(inputs.podferry_dataset)",
        "podferry.io/checkpoints": "$(inputs.podferry_checkpoints)",
        "podferry.io/secret": "$(inputs.podferry_secret)",
        "podferry.io/endpoint": "$(inputs.podferry_endpoint)",
    }
    task = spec["root"]["dag"]["tasks"][component.name]
    given = task["inputs"]["parameters"]
    assert given["podferry_dataset"]["taskOutputParameter"]["producerTask"] == "freeze"
    assert given["podferry_secret"] == {"componentInputParameter": "secret"}
    f_string = "s3://{{$.inputs.parameters['pipelinechannel--out']}}/models"
    assert given["podferry_checkpoints"] == {"runtimeValue": {"constant": f_string}}
    assert task["dependentTasks"] == ["freeze"]
    # The values as KFP's driver resolves them, in a pod as KFP's backend creates it.
    values = {"podferry_dataset": REFERENCE, "podferry_checkpoints": f_string, "pipelinechannel--out": "b"}
    pod = with_inputs(
        recorded("executor-plain"), values | {"podferry_secret": "s3", "podferry_endpoint": "http://s:9"}
    )
    resolved = read_annotations(annotations, variables_of(pod_owner_of(pod, "team"), kfp_inputs_of(pod)))
    assert resolved is not None
    assert resolved.datasets[0].reference == REFERENCE
    assert resolved.checkpoints is not None
    assert (resolved.checkpoints.uri, resolved.checkpoints.access.secret) == ("s3://b/models", "s3")
    assert resolved.checkpoints.access.endpoint == "http://s:9"


def with_inputs(pod: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The pod with further inputs in the launcher's command."""
    (main,) = (one for one in pod["spec"]["containers"] if one["name"] == "main")
    at = main["command"].index("--executor_input") + 1
    document = json.loads(main["command"][at])
    document["inputs"]["parameterValues"] |= values
    main["command"][at] = json.dumps(document)
    return pod


def test_they_reach_a_task_in_a_loop_and_in_an_inner_pipeline() -> None:
    @dsl.pipeline(name="inner")
    def inner(dataset: str) -> None:
        with dsl.ParallelFor([0.1, 0.2]) as lr:
            gpu_train(function(lr=lr), dataset=dataset)

    @dsl.pipeline(name="p")
    def pipeline(out: str) -> None:
        inner(dataset=freeze(uri=out).output)

    spec, annotations = spec_and_annotations(pipeline, "exec-function")
    assert annotations["podferry.io/dataset"] == "$(inputs.podferry_dataset)"
    (loop,) = (
        one["dag"] for one in spec["components"].values() if "function" in one.get("dag", {}).get("tasks", {})
    )
    carried = loop["tasks"]["function"]["inputs"]["parameters"]["podferry_dataset"]
    assert carried == {"componentInputParameter": "pipelinechannel--dataset"}


def test_a_second_value_replaces_the_first() -> None:
    @dsl.pipeline(name="p")
    def pipeline(out: str) -> None:
        task = function()
        for value in ("first", out, out):
            add_undeclared_input(task, "podferry_dataset", value)
        assert len(task.channel_inputs) == 1

    task = json_format.MessageToDict(pipeline.pipeline_spec)["root"]["dag"]["tasks"]["function"]
    assert task["inputs"]["parameters"] == {"podferry_dataset": {"componentInputParameter": "out"}}


@pytest.mark.parametrize(
    ("added", "same"),
    [
        ({"podferry_secret": "s3", "podferry_endpoint": "http://s", "podferry_run": "7"}, True),
        ({"podferry_checkpoints": "s3://a/b", "podferry_dataset_size": "1Gi"}, True),
        ({"podferry_dataset": REFERENCE}, False),
        ({"podferry_dataset__test": REFERENCE}, False),
    ],
)
def test_of_the_added_inputs_only_datasets_distinguish_lineages(added: dict[str, str], same: bool) -> None:
    digests = {KfpInputs("p", "r", "c", {"lr": 0.1} | extra, {}).digest for extra in ({}, added)}
    assert (len(digests) == 1) is same
