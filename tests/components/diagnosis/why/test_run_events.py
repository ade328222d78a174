"""Events about waiting pods and about a workflow become findings; those of others do not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from podferry.components.diagnosis.why.findings import Finding, finding_of, merged
from podferry.components.diagnosis.why.run_events import event_findings
from podferry.contract.errors import Problem

Json = dict[str, Any]
MOUNT = 'MountVolume.SetUp failed for volume "data" : secret "data" not found'


@pytest.fixture
def waiting(pods: dict[str, Json]) -> Json:
    """A pod whose containers are being created."""
    pod = copy.deepcopy(pods["good"])
    pod["metadata"]["name"] = "waiting"
    pod["status"] = {"phase": "Pending", "containerStatuses": []}
    return pod


def about(pod: Json, reason: str, message: str, at: str = "2026-01-01T00:00:00Z") -> Json:
    owner = {"kind": "Pod", "name": pod["metadata"]["name"]}
    return {"involvedObject": owner, "reason": reason, "message": message, "lastTimestamp": at}


def of_workflow(pod: Json, node: str, message: str) -> Json:
    workflow = pod["metadata"]["labels"]["workflows.argoproj.io/workflow"]
    path = f"{workflow}(0).root(0).{node}"
    return {
        "metadata": {"annotations": {"workflows.argoproj.io/node-name": path}},
        "involvedObject": {"kind": "Workflow", "name": workflow},
        "reason": "WorkflowNodeError",
        "message": f"Error node {path}{message}",
    }


def test_the_newest_message_of_each_reason_about_a_waiting_pod(waiting: Json) -> None:
    events = [
        about(waiting, "FailedMount", MOUNT, "2026-01-01T00:00:09Z"),
        about(waiting, "FailedMount", "older", "2026-01-01T00:00:01Z"),
        about(waiting, "BackOff", "restarting"),
        about({"metadata": {"name": "another"}}, "FailedMount", "of another run"),
    ]
    [found] = event_findings(events, [waiting])
    assert found.pod == "waiting"
    assert [(one.what, one.measured) for one in found.problems] == [("a volume cannot be mounted", MOUNT)]
    assert found.problems[0].remedy


def test_a_pod_that_runs_or_has_ended_is_not_waiting(waiting: Json) -> None:
    waiting["status"]["phase"] = "Running"
    assert event_findings([about(waiting, "FailedMount", MOUNT)], [waiting]) == []


def test_a_refused_pod_is_named_by_its_task_and_a_later_one_replaces_it(pods: dict[str, Json]) -> None:
    good = pods["good"]
    events = [
        of_workflow(good, "for-loop-2(0).iteration-item(0).train(0).executor(0)", ": exceeded quota: 2 pods"),
        of_workflow(good, "for-loop-2(0)", ""),
        of_workflow({"metadata": {"labels": {"workflows.argoproj.io/workflow": "other"}}}, "x(0)", ": no"),
    ]
    [found] = event_findings(events, [good])
    assert (found.task, found.pod) == ("train", "")
    [problem] = found.problems
    assert (problem.what, problem.measured) == ("the pod could not be created", "exceeded quota: 2 pods")
    later = copy.deepcopy(good)
    later["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = events[0]["metadata"][
        "annotations"
    ]["workflows.argoproj.io/node-name"]
    assert event_findings(events, [good, later]) == []


def test_what_the_status_says_is_not_repeated(pods: dict[str, Json]) -> None:
    pod = pods["too-big"]
    by_status = finding_of(pod)
    assert by_status
    events = [about(pod, "FailedScheduling", "0/1 nodes"), about(pod, "FailedMount", MOUNT)]
    [found] = merged([by_status], event_findings(events, [pod]))
    assert [one.what for one in found.problems] == ["no node can take the pod", "a volume cannot be mounted"]
    assert merged([], [Finding("a", "", (Problem("x"),))]) == [Finding("a", "", (Problem("x"),))]
