"""What events say that a pod's status does not: volumes, sandboxes, and pods that could not be created.

Reasons: Kubernetes, `pkg/kubelet/events/event.go` and the scheduler's. If the API server refuses the pod of a
node, Argo writes `WorkflowNodeError` about the workflow, with the node's path as an annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from podferry.components.diagnosis.why.findings import NO_NODE, Finding
from podferry.components.diagnosis.why.run_pods import (
    Pod,
    name_of,
    node_of,
    phase_of,
    task_of,
    task_of_node,
    unfinished,
)
from podferry.contract.errors import Problem
from podferry.contract.pod_owner import ATTEMPT, NODE_NAME
from podferry.webhook.pod.pod_json import annotations_of, labels_of

Event = Mapping[str, Any]
OF_PODS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "FailedMount": (
            "a volume cannot be mounted",
            "Check the Secrets, ConfigMaps and claims that the pod names",
        ),
        "FailedAttachVolume": ("a volume cannot be attached", "Check the claim and its storage class"),
        "FailedCreatePodSandBox": ("the node cannot start the pod", "Look at the node and its network"),
        "FailedScheduling": NO_NODE,
    }
)
"""What is wrong and the remedy, by the reason of an event about a pod."""
NODE_ERROR = "WorkflowNodeError"
WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
REFUSED = "the pod could not be created"
REFUSED_REMEDY = "Follow the remedy in the message; if podferry's webhook does not respond, look at its pods"


def event_findings(events: Iterable[Event], pods: Iterable[Pod]) -> list[Finding]:
    """What the events say about pods of a run that wait, and about its pods that do not exist.

    Args:
        events: Warnings of the namespace, of which others are ignored.
        pods: All pods of the run.
    """
    pods, warnings = list(pods), sorted(events, key=_when)
    waiting = {name_of(pod): pod for pod in unfinished(pods) if phase_of(pod) == "Pending"}
    workflows = {labels_of(pod).get(WORKFLOW_LABEL) for pod in pods} - {None}
    nodes = {node_of(pod) for pod in pods}
    refused = {ATTEMPT.sub("", _node(one)): one for one in warnings if _is_refusal(one, workflows)}
    return [
        *_of_waiting_pods(warnings, waiting),
        *(_refusal(one) for node, one in refused.items() if node not in nodes),
    ]


def _of_waiting_pods(warnings: Iterable[Event], waiting: Mapping[str, Pod]) -> Iterator[Finding]:
    """The newest warning of each reason about each pod."""
    newest = {(_about(one)["name"], one.get("reason")): one for one in warnings if _is_pod(one, waiting)}
    for name, pod in waiting.items():
        found = [
            Problem(OF_PODS[reason][0], str(newest[name, reason].get("message", "")), OF_PODS[reason][1])
            for reason in OF_PODS
            if (name, reason) in newest
        ]
        if found:
            yield Finding(task_of(pod), name, tuple(found))


def _is_pod(event: Event, waiting: Mapping[str, Pod]) -> bool:
    about = _about(event)
    return about.get("kind") == "Pod" and about.get("name") in waiting and event.get("reason") in OF_PODS


def _is_refusal(event: Event, workflows: Iterable[str | None]) -> bool:
    """An error of a node, with a message: those above it have errors without one."""
    about = _about(event)
    of_the_run = about.get("kind") == "Workflow" and about.get("name") in workflows
    return of_the_run and event.get("reason") == NODE_ERROR and bool(_message(event))


def _refusal(event: Event) -> Finding:
    return Finding(task_of_node(_node(event)), "", (Problem(REFUSED, _message(event), REFUSED_REMEDY),))


def _node(event: Event) -> str:
    return annotations_of(event).get(NODE_NAME, "")


def _message(event: Event) -> str:
    """The node's own message, after `Error node NAME: `."""
    return str(event.get("message", "")).partition(": ")[2]


def _about(event: Event) -> Mapping[str, Any]:
    found: Mapping[str, Any] = event.get("involvedObject") or {}
    return found


def _when(event: Event) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
