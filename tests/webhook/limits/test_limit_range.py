from typing import Any

import pytest

from podferry.webhook.limits.limit_range import limit_range_problems, with_defaults, with_requests


def limit_range(kind: str = "Container", **item: Any) -> dict[str, Any]:
    return {"metadata": {"name": "team"}, "spec": {"limits": [{"type": kind, **item}]}}


def pod(**resources: Any) -> dict[str, Any]:
    gate = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    return {
        "spec": {
            "containers": [{"name": "train", "resources": resources}],
            "initContainers": [{"name": "podferry-gate", "resources": gate}],
        }
    }


def problems(resources: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    return [str(one) for one in limit_range_problems(with_defaults(pod(**resources), rules), rules)]


def test_defaults_fill_in() -> None:
    rules = limit_range(default={"cpu": "2"}, min={"memory": "128Mi"}, max={"memory": "4Gi"})
    made = with_defaults(pod(requests={"cpu": "1"}), rules)
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "4Gi"},
        "limits": {"cpu": "2", "memory": "4Gi"},
    }


def test_a_request_that_is_not_set_is_the_limit() -> None:
    before = pod(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})
    resources = with_requests(before)["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert before["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert with_requests(pod())["spec"]["containers"][0]["resources"] == {}


def test_the_key_of_the_policy_is_named() -> None:
    full = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    (problem,) = problems(full, limit_range(min={"cpu": "50m"}))
    assert "LimitRange team: container podferry-gate: cpu is out of bounds" in problem
    assert "request 0.01, no limit; minimum 50m" in problem
    assert "set gateCpu and sidecarCpuLimit in podferry's policy" in problem
    (problem,) = problems(full, limit_range(min={"memory": "100Mi"}))
    assert "request 64.0 MiB, limit 64.0 MiB; minimum 100Mi" in problem
    assert "gateMemory" in problem


@pytest.mark.parametrize(
    ("resources", "rules", "count"),
    [
        ({"limits": {"cpu": "8"}}, {"max": {"cpu": "4"}, "default": {"cpu": "1"}}, 1),
        ({"limits": {"cpu": "4"}}, {"max": {"cpu": "4"}, "default": {"cpu": "1"}}, 0),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}, {"maxLimitRequestRatio": {"cpu": "4"}}, 2),
        ({"limits": {"cpu": "400m"}, "requests": {"cpu": "100m"}}, {"maxLimitRequestRatio": {"cpu": "4"}}, 1),
        ({}, {"max": {"nvidia.com/gpu": "8"}}, 0),
    ],
)
def test_bounds_of_containers(resources: dict[str, Any], rules: dict[str, Any], count: int) -> None:
    """The gate has no CPU limit, and so no ratio."""
    assert len(problems(resources, limit_range(**rules))) == count


def test_bounds_of_the_pod() -> None:
    rules = limit_range("Pod", max={"memory": "2Gi"}, min={"cpu": "100m"})
    assert problems({"limits": {"memory": "2Gi"}, "requests": {"cpu": "1"}}, rules) == []
    (first, second) = problems({"limits": {"memory": "3Gi"}, "requests": {"cpu": "20m"}}, rules)
    assert "the pod: cpu is out of bounds (request 0.02, no limit; minimum 100m)" in first
    assert "the pod: memory is out of bounds" in second
