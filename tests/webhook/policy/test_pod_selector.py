from typing import Any

import pytest

from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.pod_selector import covers, gpus_of, owner_kinds, selects
from podferry.webhook.policy.policy import PodSelector

TEAM = Namespace("team-a", {"tier": "training"})


def pod(*gpus: dict[str, Any], owner: str | None = "Job", labels: dict[str, str] | None = None) -> Any:
    owners = [{"kind": owner, "name": "digits", "controller": True}] if owner else None
    containers = [{"name": f"c{index}", "resources": one} for index, one in enumerate(gpus or ({},))]
    metadata = {"name": "digits", "labels": labels, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"containers": containers}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (PodSelector(), True),
        (PodSelector(namespaces=("team-*",)), True),
        (PodSelector(namespaces=("prod", "team")), False),
        (PodSelector(namespace_labels={"tier": "training"}), True),
        (PodSelector(namespace_labels={"tier": "training", "cost": "1"}), False),
        (PodSelector(labels={"app": "digits"}), True),
        (PodSelector(labels={"app": "letters"}), False),
        (PodSelector(owners=("PyTorchJob", "Job")), True),
        (PodSelector(owners=("PyTorchJob",)), False),
        (PodSelector(gpus=2), True),
        (PodSelector(gpus=3), False),
        (PodSelector(namespaces=("team-a",), labels={"app": "digits"}, owners=("Job",), gpus=1), True),
        (PodSelector(namespaces=("team-a",), labels={"app": "digits"}, owners=("Pod",), gpus=1), False),
    ],
)
def test_everything_that_is_set_must_match(selector: PodSelector, expected: bool) -> None:
    two = pod(
        {"limits": {"nvidia.com/gpu": "1"}}, {"limits": {"nvidia.com/gpu": 1}}, labels={"app": "digits"}
    )
    assert selects(selector, two, TEAM) is expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, 0),
        (None, 0),
        ({"requests": {"cpu": "8"}, "limits": None}, 0),
        ({"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}, 2),
        ({"limits": {"amd.com/gpu": "1", "nvidia.com/mig-1g.5gb": 3}}, 4),
        ({"limits": {"gpu.intel.com/i915": "1"}}, 1),
        ({"limits": {"nvidia.com/gpu": "many"}}, 0),
        ({"limits": {"example.com/gpu-licence": "1"}}, 0),
    ],
)
def test_gpus(resources: Any, expected: int) -> None:
    assert gpus_of(pod(resources)) == expected


def test_owners() -> None:
    assert set(owner_kinds(pod(owner=None))) == {"pod"}
    assert set(owner_kinds(pod(owner="Job"))) == {"job"}
    jobset = pod(owner="Job", labels={"jobset.sigs.k8s.io/jobset-name": "digits"})
    assert set(owner_kinds(jobset)) == {"job", "jobset"}


def test_the_direct_owner_of_a_step_that_cannot_be_read() -> None:
    step = pod(owner="Workflow")
    step["spec"]["containers"][0]["command"] = ["launcher", "--executor_input", "{", "--"]
    assert "workflow" in set(owner_kinds(step))


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (PodSelector(namespaces=("*",)), PodSelector(namespaces=("team",), gpus=1), True),
        (PodSelector(namespaces=("a", "b")), PodSelector(namespaces=("b",)), True),
        (PodSelector(namespaces=("a",)), PodSelector(gpus=1), False),
        (PodSelector(labels={"a": "b"}), PodSelector(labels={"a": "b", "c": "d"}), True),
        (PodSelector(labels={"a": "b"}), PodSelector(labels={"a": "c"}), False),
        (PodSelector(owners=("Job",)), PodSelector(owners=("Job", "Pod")), False),
        (PodSelector(gpus=2), PodSelector(gpus=1), False),
    ],
)
def test_a_selector_that_covers_another(wide: PodSelector, narrow: PodSelector, expected: bool) -> None:
    assert covers(wide, narrow) is expected
