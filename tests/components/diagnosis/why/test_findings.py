"""What is wrong with a pod: recorded statuses, and the shapes that a test cluster does not have."""

from __future__ import annotations

from typing import Any

import pytest

from podferry.components.diagnosis.why.findings import finding_of, problem_in
from podferry.contract.errors import Problem

Pods = dict[str, dict[str, Any]]


def problems(pod: dict[str, Any]) -> tuple[Problem, ...]:
    found = finding_of(pod)
    assert found is not None
    return found.problems


def ended(pod: dict[str, Any], container: str, **terminated: Any) -> dict[str, Any]:
    """The pod with a container that has ended."""
    status = pod["status"]
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    next(one for one in every if one["name"] == container)["state"] = {"terminated": terminated}
    return pod


def test_a_refusal_of_the_gate(pods: Pods) -> None:
    (problem,) = problems(pods["refused"])
    assert problem.what == "the dataset is larger than its volume"
    assert problem.measured.endswith("1.0 MiB are free")
    assert problem.remedy.startswith("Set podferry.io/dataset-size to 3227Ki")
    assert problem.remedy.endswith("; exit code 78: retrying cannot help")


def test_several_reasons_and_a_store_that_did_not_respond(pods: Pods) -> None:
    message = "podferry: the store does not respond (503). Try later.\nno bucket. Create it."
    first, second = problems(ended(pods["refused"], "podferry-gate", exitCode=1, message=message))
    assert first == Problem(
        "the store does not respond", "503", "Try later; exit code 1: a later try may succeed"
    )
    assert second.what == "no bucket"
    (unsaid,) = problems(ended(pods["refused"], "podferry-gate", exitCode=137))
    assert (unsaid.what, unsaid.measured) == ("podferry-gate failed", "exit code 137")


def test_what_the_agent_could_not_upload(pods: Pods) -> None:
    pod = ended(pods["refused"], "podferry-gate", exitCode=0)
    ended(pod, "podferry", exitCode=0, message="podferry: epoch-3 is not durable (403). See its log.")
    assert problems(pod) == (Problem("epoch-3 is not durable", "403", "See its log"),)


def test_a_step_that_failed_has_a_log(pods: Pods) -> None:
    found = finding_of(pods["failed"])
    assert found is not None
    assert (found.task, found.pod, found.log_of) == ("each (iteration 1)", "failed", "main")
    assert found.problems[0].measured == "exit code 1"
    refused = finding_of(pods["refused"])
    assert refused is not None
    assert refused.log_of == ""


@pytest.mark.parametrize(
    ("terminated", "what", "measured"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "main ran out of memory", "limit: 200Mi"),
        ({"exitCode": 137}, "main: killed by SIGKILL", "exit code 137"),
        ({"exitCode": 143}, "main: ended by SIGTERM", "exit code 143"),
        ({"exitCode": 74}, "main: training succeeded, but what it wrote is not durable", "exit code 74"),
        ({"exitCode": 76}, "main: nothing proves that the newest checkpoint is complete", "exit code 76"),
        ({"exitCode": 127}, "main: there is no such command in the image", "exit code 127"),
        ({"exitCode": 7, "message": "boom"}, "main: failed", "exit code 7: boom"),
    ],
)
def test_exit_codes(pods: Pods, terminated: dict[str, Any], what: str, measured: str) -> None:
    pod = ended(pods["failed"], "main", **terminated)
    main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
    main["resources"] = {"limits": {"memory": "200Mi"}}
    (problem,) = problems(pod)
    assert problem.what.startswith(what)
    assert problem.measured == measured
    assert problem.remedy


def test_an_image_that_is_not_there(pods: Pods) -> None:
    (problem,) = problems(pods["no-image"])
    assert problem.what == "the image of main cannot be pulled: localhost/absent:1"
    assert problem.measured.startswith("ErrImageNeverPull: Container image")


def test_a_container_that_cannot_start(pods: Pods) -> None:
    status = pods["no-image"]["status"]["containerStatuses"]
    main = next(one for one in status if one["name"] == "main")
    main["state"]["waiting"] = {"reason": "CreateContainerConfigError", "message": 'secret "s3" not found'}
    (problem,) = problems(pods["no-image"])
    assert problem.what == "main cannot be started"
    assert 'secret "s3" not found' in problem.measured


def test_no_node_takes_the_pod(pods: Pods) -> None:
    (problem,) = problems(pods["too-big"])
    assert problem.what == "no node can take the pod"
    assert "Insufficient memory" in problem.measured


def test_a_failed_pod_that_opted_in_and_was_not_injected(pods: Pods) -> None:
    pod = pods["failed"]
    pod["metadata"]["annotations"]["podferry.io/dataset"] = "s3://a/b"
    first, *others = problems(pod)
    assert first.what == "this pod has podferry.io/dataset, but no agent was injected"
    assert [one.measured for one in others] == ["exit code 1"]
    pod["status"]["phase"] = "Running"
    assert first not in problems(pod)


def test_a_pod_that_its_node_evicted(pods: Pods) -> None:
    pod = pods["too-big"]
    message = "The node was low on resource: memory."
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": message}
    (problem,) = problems(pod)
    assert (problem.what, problem.measured) == ("the pod was ended: Evicted", message)


def test_a_failure_without_any_reason_is_listed_too() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": []}, "status": {"phase": "Failed"}}
    (problem,) = problems(pod)
    assert (problem.what, problem.measured) == ("the pod failed", "no reason is given")


def test_a_pod_that_runs_has_no_finding(pods: Pods) -> None:
    pod = ended(pods["failed"], "main", exitCode=0)
    pod["status"]["phase"] = "Running"
    assert finding_of(pod) is None


@pytest.mark.parametrize(
    "problem",
    [
        Problem("no bucket", "s3://a.b/c", "Create it"),
        Problem("no bucket", "s3://a (b)"),
        Problem("no bucket", remedy="Create it. Then try again"),
        Problem("no bucket"),
        Problem("s3://a.b/c is absent", "404", "Did you mean s3://a.b/d?"),
    ],
)
def test_a_line_is_divided_as_it_was_put_together(problem: Problem) -> None:
    assert problem_in(str(problem)) == problem


def test_a_line_that_cannot_be_divided_stays_whole() -> None:
    assert problem_in("a (b) c (d). E.") == Problem("a (b) c (d). E")
