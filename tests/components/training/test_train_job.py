"""`train_job`: the spec for each version of Kubeflow Trainer, and the task in a pipeline."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import dataset, restore_point, train_job, verify_checkpoint
from podferry.components.training.train_job.manifest import train_job_spec
from podferry.contract.errors import InvalidSpec, Refused
from podferry.contract.pod_templates import pod_templates_of

ANNOTATIONS = {"podferry.io/dataset": "s3://a/b"}
RUNTIME = {"kind": "ClusterTrainingRuntime", "name": "torch-distributed"}


def schema_of(*path: str) -> Any:
    """A schema of a spec with one field at a path; `[]` is a list's items."""
    schema: Any = {"type": "object", "properties": {"runtimeRef": {"type": "object"}}}
    node = schema
    for step in path:
        key = "items" if step == "[]" else "properties"
        child: Any = {"type": "object"}
        node[key] = child if step == "[]" else {**node.get(key, {}), step: child}
        node = child
    return schema


POD_METADATA = ("template", "spec", "template", "metadata", "annotations")
PATCHES = (
    *("runtimePatches", "[]", "trainingRuntimeSpec", "template", "spec", "replicatedJobs", "[]"),
    *POD_METADATA,
)
OVERRIDES = ("podTemplateOverrides", "[]", "metadata", "annotations")


@pytest.mark.parametrize("path", [PATCHES, OVERRIDES])
def test_the_served_fields_decide_where_pods_are_annotated(path: tuple[str, ...]) -> None:
    spec = train_job_spec(schema_of(*path), RUNTIME, {"numNodes": 2}, {}, "node", ANNOTATIONS)
    assert spec["runtimeRef"] == {"apiGroup": "trainer.kubeflow.org", **RUNTIME}
    assert spec["trainer"] == {"numNodes": 2}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "digits"}}
    (template,) = pod_templates_of({**job, "spec": spec})  # what podferry's webhook looks at
    assert template.path.startswith(f"spec.{path[0]}")
    assert template.pod["metadata"]["annotations"] == ANNOTATIONS


def test_own_patches_of_the_author_stay() -> None:
    own = {"manager": "team.example/nodes", "trainingRuntimeSpec": {}}
    more = {"runtimePatches": [own], "activeDeadlineSeconds": 3600}
    spec = train_job_spec(schema_of(*PATCHES), RUNTIME, {}, more, "node", ANNOTATIONS)
    assert spec["runtimePatches"][0] == own
    assert spec["runtimePatches"][1]["manager"] == "podferry.io/train-job"
    assert spec["activeDeadlineSeconds"] == 3600
    assert "trainer" not in spec


def test_trainer_2_0_is_refused_with_its_fields() -> None:
    old = schema_of("podSpecOverrides", "[]", "containers")
    with pytest.raises(Refused, match=r"fields of its spec: podSpecOverrides, runtimeRef.*Use Trainer 2\.1"):
        train_job_spec(old, RUNTIME, {}, {}, "node", ANNOTATIONS)


def test_without_annotations_any_version_will_do() -> None:
    spec = train_job_spec(schema_of("podSpecOverrides"), RUNTIME, {}, {"suspend": True}, "node", {})
    assert spec == {"suspend": True, "runtimeRef": {"apiGroup": "trainer.kubeflow.org", **RUNTIME}}


def test_a_schema_without_metadata_is_not_one_that_annotates() -> None:
    with pytest.raises(Refused):
        train_job_spec(schema_of("podTemplateOverrides", "[]", "spec"), RUNTIME, {}, {}, "node", ANNOTATIONS)


def tasks_of(pipeline: Any) -> Any:
    return json_format.MessageToDict(pipeline.pipeline_spec)["root"]["dag"]["tasks"]


def test_a_frozen_dataset_may_be_answered_from_kfps_cache() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str) -> None:
        data = dataset(uri)
        train_job("torch", dataset=data.outputs["reference"], secret="s3")
        train_job("torch", dataset="s3://a/b#sha256=0&bytes=1&files=1")
        train_job("torch")

    tasks = tasks_of(one)
    for name in ("train-job", "train-job-2", "train-job-3"):
        assert tasks[name]["cachingOptions"]["enableCache"] is True, name
        assert "run" not in tasks[name]["inputs"]["parameters"]


def test_another_dataset_makes_the_run_an_input() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str) -> None:
        train_job("torch", dataset=uri)
        train_job("torch", dataset={"train": "s3://a/b", "test": "s3://a/c#sha256=0&bytes=1&files=1"})

    tasks = tasks_of(one)
    for name in ("train-job", "train-job-2"):
        assert not tasks[name]["cachingOptions"].get("enableCache", False)
        run = tasks[name]["inputs"]["parameters"]["run"]["runtimeValue"]["constant"]
        assert run == dsl.PIPELINE_JOB_ID_PLACEHOLDER


def test_settings_are_an_input_and_may_have_outputs_of_tasks_in_them() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str, size: str) -> None:
        train_job("torch", dataset=uri, checkpoint_size=size, world=2, image="team/steps:1-python")

    task = tasks_of(one)["train-job"]["inputs"]["parameters"]
    settings = task["settings"]["runtimeValue"]["constant"]
    assert settings == {"checkpoint-size": "{{$.inputs.parameters['pipelinechannel--size']}}", "world": 2}
    assert task["dataset"] == {"componentInputParameter": "uri"}
    executors = json_format.MessageToDict(one.pipeline_spec)["deploymentSpec"]["executors"]
    assert executors["exec-train-job"]["container"]["image"] == "team/steps:1-python"


def test_unknown_settings_are_refused_when_the_pipeline_is_compiled() -> None:
    with pytest.raises(InvalidSpec, match=r"train_job has no such setting.*Did you mean 'checkpoint_size'"):

        @dsl.pipeline(name="p")
        def one() -> None:
            train_job("torch", chekpoint_size="8Gi")


def test_verify_checkpoint_takes_the_lineage_that_the_job_returns() -> None:
    @dsl.pipeline(name="p")
    def one() -> None:
        job = train_job("torch", checkpoints="s3://a/b")
        verify_checkpoint(of=job)

    task = tasks_of(one)["verify-checkpoint"]
    assert task["dependentTasks"] == ["train-job"]
    inputs = task["inputs"]["parameters"]
    job = {"producerTask": "train-job", "outputParameterKey": "checkpoints"}
    assert inputs["checkpoints"] == {"taskOutputParameter": job}
    place = "{{$.inputs.parameters['pipelinechannel--train-job-lineage']}}"
    assert inputs["lineages"]["runtimeValue"]["constant"] == [place]
    assert inputs["of"]["runtimeValue"]["constant"] == []


def test_restore_point_takes_the_lineage_that_the_job_returns() -> None:
    """That of the step's own inputs would be another one, without a checkpoint."""

    @dsl.pipeline(name="p")
    def one() -> None:
        restore_point(of=train_job("torch", checkpoints="s3://a/b"))

    task = tasks_of(one)["restore-point"]
    inputs = task["inputs"]["parameters"]
    found = {name: inputs[name]["taskOutputParameter"] for name in ("checkpoints", "lineage")}
    assert found == {one: {"producerTask": "train-job", "outputParameterKey": one} for one in found}
    assert inputs["of"]["runtimeValue"]["constant"] == []


def test_verify_checkpoint_refuses_a_mixture() -> None:
    with pytest.raises(InvalidSpec, match="of= mixes steps that run jobs with other steps"):

        @dsl.pipeline(name="p")
        def one() -> None:
            job = train_job("torch", checkpoints="s3://a/b")
            verify_checkpoint(of=[job, dataset("s3://a/b")])
