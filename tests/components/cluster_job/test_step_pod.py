from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.components.cluster_job.step_pod import (
    NODE_ANNOTATION,
    RUN_ANNOTATION,
    StepIdentity,
    identity_of,
    local_identity,
)
from podferry.contract.lineage import lineage_problem

RECORDED = Path(__file__).parents[2] / "data" / "kfp-pods"
RFC_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def recorded(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    pod["metadata"].setdefault("uid", "uid-1")
    return pod


def test_a_kfp_pod_is_identified_by_run_and_node() -> None:
    step = identity_of(recorded("executor-parallelfor"), "kubeflow")
    assert (step.pipeline, step.task) == ("more", "each")
    assert step.run == "7f396e2e-9361-427c-a17f-b2953857c26d"
    assert step.node == "more-6rbft.root.for-loop-2.iteration-iterations(1:1).iteration-item.each.executor"
    assert step.annotations == {RUN_ANNOTATION: step.run, NODE_ANNOTATION: step.node}
    assert step.owner == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "more-6rbft-metadata-2-0-system-container-impl-1975078333",
        "uid": "uid-1",
    }


def test_a_retried_pod_has_the_same_job() -> None:
    first = recorded("executor-retry")
    again = copy.deepcopy(first)
    again["metadata"] |= {"name": "more-6rbft-retry-system-container-impl-2", "uid": "uid-2"}
    node = "workflows.argoproj.io/node-name"
    again["metadata"]["annotations"][node] = again["metadata"]["annotations"][node].replace("(0)", "(1)")
    names = {identity_of(pod, "kubeflow").job_name for pod in (first, again)}
    assert len(names) == 1
    assert identity_of(again, "kubeflow").owner != identity_of(first, "kubeflow").owner


def test_iterations_runs_and_tasks_have_jobs_of_their_own() -> None:
    pods = [recorded(name) for name in ("executor-parallelfor", "executor-plain", "executor-retry")]
    other_item, other_run = copy.deepcopy(pods[0]), copy.deepcopy(pods[0])
    annotations = other_item["metadata"]["annotations"]
    annotations["workflows.argoproj.io/node-name"] = annotations["workflows.argoproj.io/node-name"].replace(
        "(1:1)", "(0:0)"
    )
    other_run["metadata"]["labels"]["pipeline/runid"] = "another"
    names = [identity_of(pod, "kubeflow").job_name for pod in (*pods, other_item, other_run)]
    assert len(set(names)) == len(names)


@given(st.text(max_size=80), st.text(max_size=40))
def test_a_name_is_a_short_label(task: str, run: str) -> None:
    name = local_identity("default", run, task).job_name
    assert RFC_1035.fullmatch(name)
    assert len(f"{name}-worker-0-0-abcde") <= 63


def test_the_lineage_is_that_of_pipeline_task_and_inputs() -> None:
    step = identity_of(recorded("executor-plain"), "team")
    inputs = {"trainer": {"numNodes": 2, "image": "a"}, "dataset": "s3://a/b"}
    lineage = step.lineage(inputs)
    assert re.fullmatch(r"team\.kfp\.two-step\.produce\.[0-9a-f]{12}", lineage)
    assert lineage_problem(lineage) is None
    doubles = {"dataset": "s3://a/b", "trainer": {"image": "a", "numNodes": 2.0}}
    assert step.lineage(doubles) == lineage  # KFP's numbers
    assert step.lineage(inputs | {"dataset": "s3://a/c"}) != lineage
    later_run = StepIdentity("team", "another-run", step.node, step.pipeline, step.task)
    assert later_run.lineage(inputs) == lineage


def test_a_pod_that_is_no_kfp_step_is_a_run_of_its_own() -> None:
    pod = {"metadata": {"name": "notebook-0", "uid": "uid-9"}, "spec": {"containers": []}}
    step = identity_of(pod, "team")
    assert (step.run, step.node, step.pipeline, step.task) == (
        "uid-9",
        "notebook-0",
        "pipeline",
        "notebook-0",
    )


@pytest.mark.parametrize("task", ["", "42", "--", "ÄÖ"])
def test_a_task_without_letters_still_has_a_name(task: str) -> None:
    assert RFC_1035.fullmatch(local_identity("default", "run", task).job_name)
