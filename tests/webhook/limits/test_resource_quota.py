from typing import Any

import pytest

from podferry.webhook.limits.resource_quota import quota_problems, quota_rows

FULL = {"cpu": "1", "memory": "1Gi"}


def quota(used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "compute"}, "spec": spec, "status": {"used": used or {}}}


def pod(resources: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "train", "resources": resources}], **spec}}


def priority(operator: str) -> dict[str, Any]:
    return {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}]}


def test_what_is_left() -> None:
    rules = quota({"limits.memory": "3Gi"}, hard={"limits.memory": "4Gi", "services": "5", "pods": "10"})
    memory, pods = quota_rows(pod({"limits": FULL}), rules)
    assert (memory.resource, memory.used, memory.added, memory.hard) == (
        "limits.memory",
        3 << 30,
        1 << 30,
        4 << 30,
    )
    assert (pods.resource, pods.added) == ("pods", 1)
    assert list(quota_problems(pod({"limits": FULL}), rules)) == []


def test_exceeded() -> None:
    rules = quota({"requests.cpu": "9500m"}, hard={"requests.cpu": "10"})
    (problem,) = quota_problems(pod({"requests": FULL}), rules)
    assert str(problem).startswith(
        "ResourceQuota compute: requests.cpu is exceeded (9.5 used and 1 for the pod; at most 10)"
    )


def test_what_a_quota_counts_must_be_set() -> None:
    rules = quota(hard={"limits.cpu": "10", "memory": "10Gi"})
    texts = [str(one) for one in quota_problems(pod({}), rules)]
    assert len(texts) == 2
    assert "containers set no requests.memory (train). Set it." in texts[0]
    assert "containers set no limits.cpu (train). Set it; for podferry's" in texts[1]
    of_pod = pod({})
    of_pod["spec"]["resources"] = {"limits": FULL, "requests": FULL}
    assert list(quota_problems(of_pod, rules)) == []


@pytest.mark.parametrize(
    ("scope", "spec", "applies"),
    [
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, {}, True),
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopeSelector": priority("In")}, {"priorityClassName": "high"}, True),
        ({"scopeSelector": priority("In")}, {"priorityClassName": "low"}, False),
        ({"scopeSelector": priority("NotIn")}, {"priorityClassName": "high"}, False),
        ({"scopeSelector": priority("NotIn")}, {}, True),
    ],
)
def test_scopes(scope: dict[str, Any], spec: dict[str, Any], applies: bool) -> None:
    rules = quota(hard={"pods": "10"}, **scope)
    assert bool(quota_rows(pod({"requests": FULL}, **spec), rules)) is applies
