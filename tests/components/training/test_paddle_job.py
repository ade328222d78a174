"""`paddle_job`: its spec, and the task in a pipeline."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import paddle_job
from podferry.components.training.paddle_job.manifest import paddle_job_spec
from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_templates import pod_templates_of

ROLE = {"replicas": 2, "template": {"spec": {"containers": [{"name": "paddle", "image": "a"}]}}}
ANNOTATIONS = {"worker": {"podferry.io/dataset": "s3://a/b"}}


def test_the_workers_are_annotated_and_the_servers_are_not() -> None:
    spec = paddle_job_spec({}, ROLE, ROLE, {"withGloo": 1}, ANNOTATIONS)
    assert spec["withGloo"] == 1
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "digits"}}
    templates = {one.path: one for one in pod_templates_of({**job, "spec": spec})}
    assert templates["spec.worker.template"].pod["metadata"]["annotations"] == ANNOTATIONS["worker"]
    assert templates["spec.worker.template"].pods == 2
    assert templates["spec.ps.template"].pod["metadata"]["annotations"] == {}


def test_servers_have_settings_of_their_own() -> None:
    both = ANNOTATIONS | {"ps": {"podferry.io/checkpoints": "s3://a/c"}}
    spec = paddle_job_spec({}, ROLE, ROLE, {}, both)
    assert spec["ps"]["template"]["metadata"]["annotations"] == both["ps"]


def test_a_collective_training_has_no_servers() -> None:
    assert set(paddle_job_spec({}, ROLE, {}, {}, ANNOTATIONS)) == {"worker"}


def test_annotations_of_the_author_stay() -> None:
    own = {
        **ROLE,
        "template": {**ROLE["template"], "metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}},
    }
    metadata = paddle_job_spec({}, own, {}, {}, ANNOTATIONS)["worker"]["template"]["metadata"]
    assert metadata == {"annotations": {"a": "b", **ANNOTATIONS["worker"]}, "labels": {"c": "d"}}
    assert own["template"]["metadata"]["annotations"] == {"a": "b"}


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidSpec) as caught:
        paddle_job_spec({}, {"replicas": 0, "template": ROLE["template"]}, {"replicas": 1}, {}, {})
    assert [one.what for one in caught.value.problems] == [
        "worker.replicas: not an integer of 1 or more",
        "ps.template.spec.containers: there is none",
    ]


def test_the_task() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str, image: str) -> None:
        container = {"name": "paddle", "image": image}
        worker = {"replicas": 2, "template": {"spec": {"containers": [container]}}}
        paddle_job(worker, servers=ROLE, dataset=uri, server_settings={"checkpoints": "s3://a/b"}, world=2)

    task: Any = json_format.MessageToDict(one.pipeline_spec)["root"]["dag"]["tasks"]["paddle-job"]
    inputs = task["inputs"]["parameters"]
    constants = {
        name: one["runtimeValue"]["constant"] for name, one in inputs.items() if "runtimeValue" in one
    }
    container = constants["worker"]["template"]["spec"]["containers"][0]
    assert container["image"] == "{{$.inputs.parameters['pipelinechannel--image']}}"
    assert constants["server_settings"] == {"checkpoints": "s3://a/b"}
    assert constants["settings"] == {"world": 2}
    assert constants["run"] == dsl.PIPELINE_JOB_ID_PLACEHOLDER
    assert not task["cachingOptions"].get("enableCache", False)


def test_unknown_settings_of_the_servers_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="server_settings has no such setting"):

        @dsl.pipeline(name="p")
        def one() -> None:
            paddle_job(ROLE, server_settings={"datset": "x"})
