"""The pods of a KFP run: which task each one is, and which were replaced by one that succeeded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_owner import ATTEMPT, BRACKETS, NODE_NAME, pod_owner_of, sibling_task
from podferry.webhook.pod.pod_json import annotations_of

ROLE = "pipelines.kubeflow.org/runtime-role"
ITERATION = re.compile(r"iteration-iterations\((\d+):")
"""A level of Argo's path: the number of a ParallelFor's iteration."""
EXECUTOR = "executor"
"""The last level of that path, for the pod that runs the task's code."""
Pod = Mapping[str, Any]


def node_of(pod: Pod) -> str:
    """Argo's path of the pod's node without attempts: a retry has the same."""
    node = annotations_of(pod).get(NODE_NAME)
    return ATTEMPT.sub("", node) if node else name_of(pod)


def name_of(pod: Pod) -> str:
    """The pod's name."""
    return str((pod.get("metadata") or {}).get("name", ""))


def phase_of(pod: Pod) -> str:
    """The pod's phase."""
    return str((pod.get("status") or {}).get("phase", ""))


def task_of(pod: Pod) -> str:
    """The task as people know it: its name below inner pipelines, with a ParallelFor's iteration."""
    annotations = annotations_of(pod)
    node = annotations.get(NODE_NAME, "")
    iterations = _iterations(node)
    if annotations.get(ROLE) == "driver":
        return f"KFP's driver {BRACKETS.sub('', node).rpartition('.')[2]}{iterations}"
    try:
        task = pod_owner_of(pod).task
    except InvalidSpec:
        task = ""
    return f"{task or name_of(pod)}{iterations}"


def task_of_node(node: str) -> str:
    """The same from Argo's path of the task's node, where there is no pod."""
    levels = BRACKETS.sub("", node).split(".")
    task = levels[-2] if levels[-1] == EXECUTOR and len(levels) > 1 else levels[-1]
    return f"{sibling_task(node, task)}{_iterations(node)}"


def _iterations(node: str) -> str:
    return "".join(f" (iteration {number})" for number in ITERATION.findall(node))


def unfinished(pods: Iterable[Pod]) -> list[Pod]:
    """The pods that have not succeeded and were not replaced by one that has, oldest first."""
    found = sorted(pods, key=_created)
    done = {node_of(pod) for pod in found if phase_of(pod) == "Succeeded"}
    return [pod for pod in found if phase_of(pod) != "Succeeded" and node_of(pod) not in done]


def _created(pod: Pod) -> tuple[str, str]:
    return str((pod.get("metadata") or {}).get("creationTimestamp", "")), name_of(pod)
