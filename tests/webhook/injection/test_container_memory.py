from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.memory_sum import MemorySum, memory_sum
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.container_memory import (
    memory_problems,
    raise_memory,
    shm_bytes,
    shm_warnings,
)
from podferry.webhook.pod.json_patch import Draft
from podferry.webhook.policy.policy import Bounds, Policy

GIB, MIB = 1 << 30, 1 << 20


@pytest.fixture
def memory(spec: Callable[..., FerrySpec]) -> MemorySum:
    """Of a pod with checkpoints of 100 MiB, which the trainer writes."""
    return memory_sum(spec(checkpoints="s3://c/x", checkpoint_size="100Mi"))


def container_of(limit: str | None, **more: Any) -> dict[str, Any]:
    limits = {} if limit is None else {"memory": limit}
    return {"name": "train", "resources": {"limits": limits, **more}}


@pytest.mark.parametrize(
    ("limit", "requested", "expected"),
    [
        (None, None, GIB),
        ("8Gi", None, GIB),
        ("1Gi", None, 512 * MIB),
        ("100Mi", None, 64 * MIB),
        ("1Gi", 3 * GIB, 3 * GIB),
    ],
)
def test_shm_takes_at_most_half_of_the_trainers_memory(
    policy: Policy, limit: str | None, requested: int | None, expected: int
) -> None:
    assert shm_bytes(container_of(limit), requested, policy) == expected


def test_a_shm_that_may_get_the_trainer_killed_is_reported() -> None:
    (warning,) = shm_warnings(container_of("1Gi"), GIB)
    assert "container train: its /dev/shm of 1.0 GiB is not below its memory limit of 1.0 GiB" in warning
    assert shm_warnings(container_of("1Gi"), GIB - 1) == shm_warnings(container_of(None), GIB) == ()


def test_more_memory_than_the_policy_allows_is_reported(memory: MemorySum, policy: Policy) -> None:
    assert list(memory_problems(memory, policy)) == []
    bounded = msgspec.structs.replace(policy, bounds=Bounds(sidecar_memory=memory.sidecar - 1))
    (problem,) = memory_problems(memory, bounded)
    assert "Use smaller checkpoints" in str(problem)
    exact = msgspec.structs.replace(policy, bounds=Bounds(sidecar_memory=memory.sidecar))
    assert list(memory_problems(memory, exact)) == []


def test_the_trainers_memory_is_raised_where_it_is_set(memory: MemorySum, policy: Policy) -> None:
    pod = {"spec": {"containers": [{"name": "proxy"}, container_of("1Gi", requests={"cpu": "1"})]}}
    draft = Draft(pod)
    assert raise_memory(draft, 1, memory, policy) == ()
    proxy, trainer = draft.document["spec"]["containers"]
    assert proxy == {"name": "proxy"}
    assert memory.trainer
    assert trainer["resources"] == {
        "limits": {"memory": f"{1024 + memory.trainer // MIB}Mi"},
        "requests": {"cpu": "1"},
    }


def test_a_raise_within_the_policys_bound_is_reported(memory: MemorySum, policy: Policy) -> None:
    bounded = msgspec.structs.replace(policy, bounds=Bounds(trainer_raise=64 * MIB))
    draft = Draft({"spec": {"containers": [container_of("1Gi")]}})
    (warning,) = raise_memory(draft, 0, memory, bounded)
    assert "raises its limit of 1Gi only by 64.0 MiB" in warning
    assert draft.document["spec"]["containers"][0]["resources"]["limits"]["memory"] == "1088Mi"
