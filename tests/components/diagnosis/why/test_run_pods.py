"""Which task a pod is, and which pods were replaced by one that succeeded."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from podferry.components.diagnosis.why.run_pods import node_of, task_of, unfinished

Pods = dict[str, dict[str, Any]]
DRIVER = Path(__file__).parents[3] / "data" / "kfp-pods" / "dag-driver.json"


def test_tasks_are_named_as_people_know_them(pods: Pods) -> None:
    assert {name: task_of(pod) for name, pod in pods.items()} == {
        "refused": "produce",
        "failed": "each (iteration 1)",
        "no-image": "flaky",
        "too-big": "cc",
        "good": "consume",
    }
    assert task_of(json.loads(DRIVER.read_text())) == "KFP's driver root-driver"
    assert task_of({"metadata": {"name": "another"}}) == "another"


def test_a_pod_whose_command_cannot_be_read_has_its_own_name(pods: Pods) -> None:
    pod = pods["refused"]
    main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
    main["command"] = ["x", "--executor_input", "{"]
    assert task_of(pod) == "refused"


def test_what_succeeded_later_is_not_listed(pods: Pods) -> None:
    assert sorted(pod["metadata"]["name"] for pod in unfinished(pods.values())) == [
        *("failed", "no-image", "refused", "too-big")
    ]
    again = copy.deepcopy(pods["failed"])
    again["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = (
        pods["failed"]["metadata"]["annotations"]["workflows.argoproj.io/node-name"]
    ).replace("each(0)", "each(1)")
    again["status"]["phase"] = "Succeeded"
    assert node_of(again) == node_of(pods["failed"])
    assert "failed" not in [pod["metadata"]["name"] for pod in unfinished([*pods.values(), again])]


def test_another_iteration_that_succeeded_is_another_node(pods: Pods) -> None:
    other = copy.deepcopy(pods["failed"])
    annotations = other["metadata"]["annotations"]
    annotations["workflows.argoproj.io/node-name"] = annotations["workflows.argoproj.io/node-name"].replace(
        "(1:1)", "(0:0)"
    )
    other["status"]["phase"] = "Succeeded"
    assert len(unfinished([pods["failed"], other])) == 1
