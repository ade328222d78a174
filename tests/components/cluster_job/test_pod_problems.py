from __future__ import annotations

from typing import Any

import pytest

from podferry.components.cluster_job.pod_problems import (
    Failure,
    Wait,
    failures_of,
    has_started,
    not_injected,
    waits_of,
)


def pod(*statuses: Any, init: tuple[Any, ...] = (), metadata: Any = None, **status: Any) -> Any:
    return {
        "metadata": {"name": "digits-node-0-0-x", **(metadata or {})},
        "status": {"initContainerStatuses": list(init), "containerStatuses": list(statuses), **status},
    }


def ended(name: str, code: int, at: str = "2026-01-01T00:00:00Z", **more: Any) -> Any:
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": at, **more}}}


def waiting(name: str, reason: str, message: str = "", **more: Any) -> Any:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, **more}


def test_the_exit_code_reason_and_message_of_a_container() -> None:
    (failure,) = failures_of(pod(ended("node", 3, reason="Error", message="no GPU\n"), ended("sidecar", 0)))
    assert failure == Failure("digits-node-0-0-x", "node", 3, "Error", "no GPU", "2026-01-01T00:00:00Z")
    assert str(failure) == "pod digits-node-0-0-x, container node: exit code 3 (Error): no GPU"


def test_the_gates_refusal_is_a_failure_of_an_init_container() -> None:
    refused = ended("podferry-gate", 78, message="the dataset does not fit")
    (failure,) = failures_of(pod(waiting("node", "PodInitializing"), init=(refused,)))
    assert (failure.container, failure.exit_code, failure.message) == (
        "podferry-gate",
        78,
        "the dataset does not fit",
    )


def test_failures_are_in_the_order_of_time() -> None:
    late, early = ended("a", 1, "2026-01-01T00:00:09Z"), ended("b", 2, "2026-01-01T00:00:01Z")
    assert [one.container for one in failures_of(pod(late, early))] == ["b", "a"]


def test_a_container_that_is_restarted_has_failed_before() -> None:
    again = waiting("node", "CrashLoopBackOff", lastState=ended("node", 137, reason="OOMKilled")["state"])
    (failure,) = failures_of(pod(again))
    assert (failure.exit_code, failure.reason) == (137, "OOMKilled")


@pytest.mark.parametrize(("code", "count"), [(143, 0), (137, 0), (1, 1)])
def test_containers_that_end_with_their_deleted_pod_have_not_failed(code: int, count: int) -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert len(failures_of(pod(ended("node", code), metadata=leaving))) == count


def test_an_evicted_pod_has_failed_without_a_container() -> None:
    (failure,) = failures_of(pod(phase="Failed", reason="Evicted", message="low on memory"))
    assert str(failure) == "pod digits-node-0-0-x: Evicted: low on memory"


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available",
}


def test_what_a_pod_waits_for() -> None:
    assert waits_of(pod(phase="Pending", conditions=[UNSCHEDULABLE])) == [
        Wait("digits-node-0-0-x", "Unschedulable", "0/1 nodes are available")
    ]
    (wait,) = waits_of(pod(waiting("node", "ImagePullBackOff", "Back-off pulling image")))
    assert wait.is_mistake
    assert str(wait) == "pod digits-node-0-0-x waits: ImagePullBackOff: Back-off pulling image"
    assert waits_of(pod(waiting("node", "PodInitializing"), waiting("other", "ContainerCreating"))) == []
    assert not Wait("a", "Unschedulable").is_mistake


def test_staging_counts_as_started() -> None:
    staging = {"name": "podferry", "state": {"running": {}}}
    assert has_started([pod(waiting("node", "PodInitializing"), init=(staging,), phase="Pending")])
    assert has_started([pod(phase="Running")])
    assert not has_started([pod(waiting("node", "PodInitializing"), phase="Pending")])
    assert not has_started([])


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({}, False),
        ({"podferry.io/dataset": "s3://a/b"}, True),
        ({"podferry.io/dataset": "s3://a/b", "podferry.io/status": "injected"}, False),
    ],
)
def test_pods_that_the_webhook_has_not_seen(annotations: dict[str, str], found: bool) -> None:
    assert not_injected({"metadata": {"annotations": annotations}}) is found
