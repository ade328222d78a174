from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.components.cluster_job.job_kind import PADDLE_JOB, TRAIN_JOB, JobState, Phase, belongs
from podferry.contract.workloads import WORKLOADS

DEPLOY = Path(__file__).parents[3] / "deploy"


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


ACTIVE = JobState(Phase.ACTIVE)
TRAIN_JOBS: list[tuple[Any, JobState]] = [
    ({}, ACTIVE),
    ({"conditions": []}, ACTIVE),
    ({"conditions": [condition("Failed", "False"), condition("Suspended", "False")]}, ACTIVE),
    ({"conditions": [condition("Suspended", reason="Suspended")]}, JobState(Phase.SUSPENDED, "Suspended")),
    (
        {"conditions": [condition("Complete", reason="JobsCompleted", message="jobset completed")]},
        JobState(Phase.SUCCEEDED, "JobsCompleted: jobset completed"),
    ),
    (
        {"conditions": [condition("Suspended", "False"), condition("Failed", message="no")]},
        JobState(Phase.FAILED, "no"),
    ),
    (
        {"jobsStatus": [{"name": "node", "active": 1, "ready": 0, "failed": 2}]},
        JobState(Phase.ACTIVE, progress="node: 1 active, 2 failed"),
    ),
    (
        {
            "jobsStatus": [{"name": "node"}],
            "trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 90},
        },
        JobState(Phase.ACTIVE, progress="node: none yet; 40% done, 90 s left"),
    ),
]
PADDLE_JOBS: list[tuple[Any, JobState]] = [
    ({}, ACTIVE),
    ({"phase": "Pending"}, JobState(Phase.ACTIVE, "phase Pending", "Pending")),
    (
        {"phase": "Running", "ps": {"running": 1}, "worker": {"running": 2, "refs": [{}]}},
        JobState(Phase.ACTIVE, "phase Running", "Running; ps: 1 running; worker: 2 running"),
    ),
    ({"phase": "Completed"}, JobState(Phase.SUCCEEDED, "phase Completed", "Completed")),
    ({"phase": "Succeed"}, JobState(Phase.SUCCEEDED, "phase Succeed", "Succeed")),
    ({"phase": "Failed"}, JobState(Phase.FAILED, "phase Failed", "Failed")),
    ({"phase": "Aborted"}, JobState(Phase.FAILED, "phase Aborted", "Aborted")),
    ({"phase": "Terminated"}, JobState(Phase.FAILED, "phase Terminated", "Terminated")),
    ({"phase": "Restarting"}, JobState(Phase.ACTIVE, "phase Restarting", "Restarting")),
]


@pytest.mark.parametrize(("status", "state"), TRAIN_JOBS)
def test_the_state_of_a_train_job(status: Any, state: JobState) -> None:
    assert TRAIN_JOB.state({"status": status}) == state


@pytest.mark.parametrize(("status", "state"), PADDLE_JOBS)
def test_the_state_of_a_paddle_job(status: Any, state: JobState) -> None:
    assert PADDLE_JOB.state({"status": status}) == state


@pytest.mark.parametrize("kind", [TRAIN_JOB, PADDLE_JOB])
def test_podferrys_webhook_knows_the_kind(kind: Any) -> None:
    assert (kind.group, kind.kind) in WORKLOADS
    assert kind.path("team") == f"/apis/{kind.group}/{kind.version}/namespaces/team/{kind.plural}"
    assert kind.path("team", "digits") == f"{kind.path('team')}/digits"


@pytest.mark.parametrize("kind", [TRAIN_JOB, PADDLE_JOB])
def test_the_role_allows_what_a_step_does_with_a_job(kind: Any) -> None:
    role, _ = yaml.safe_load_all((DEPLOY / "kfp-jobs" / "role.yaml").read_text())
    allowed = {
        (group, resource): rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed[kind.group, kind.plural] == ["create", "get", "patch", "delete"]
    assert {"pods", "pods/log", "events"} <= {resource for group, resource in allowed if not group}


def test_pods_of_other_paddle_jobs_do_not_belong() -> None:
    def pod(owner: str) -> Any:
        return {"metadata": {"ownerReferences": [{"kind": "PaddleJob", "name": owner}]}}

    assert belongs(pod("digits"), PADDLE_JOB, "digits")
    assert not belongs(pod("letters"), PADDLE_JOB, "digits")
    assert not belongs({"metadata": {}}, PADDLE_JOB, "digits")
    assert PADDLE_JOB.pods("digits") == "paddle-res-name"
    assert TRAIN_JOB.pods("digits") == "jobset.sigs.k8s.io/jobset-name=digits"
