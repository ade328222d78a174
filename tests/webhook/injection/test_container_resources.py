from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.memory_sum import memory_sum
from podferry.contract.quantity import parse_quantity
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.container_resources import (
    GUARANTEED_CPU,
    LOG_BYTES,
    AgentLimits,
    agent_limits,
    cpu_warnings,
    disk_limited,
    gate_resources,
    sidecar_resources,
)
from podferry.webhook.injection.inject import inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.quality_of_service import is_guaranteed
from podferry.webhook.policy.policy import Policy

MIB = 1 << 20
FULL = {"cpu": "4", "memory": "8Gi"}
GUARANTEED = {"spec": {"containers": [{"resources": {"limits": FULL}}]}}
BURSTABLE: dict[str, Any] = {"spec": {"containers": [{"resources": {"limits": {"memory": "1Gi"}}}]}}
LIMITED_DISK: dict[str, Any] = {
    "spec": {"containers": [{}], "initContainers": [{"resources": {"limits": {"ephemeral-storage": "1Gi"}}}]}
}


@pytest.fixture
def limited(policy: Policy) -> Policy:
    """With a CPU limit for podferry's containers."""
    defaults = msgspec.structs.replace(policy.defaults, sidecar_cpu_limit="2", gate_cpu="50m")
    return msgspec.structs.replace(policy, defaults=defaults)


def cpu(resources: dict[str, Any]) -> tuple[str | None, str | None]:
    return resources["requests"].get("cpu"), resources["limits"].get("cpu")


def both(memory: Any, limits: AgentLimits) -> tuple[Any, Any]:
    return cpu(sidecar_resources(memory, limits)), cpu(gate_resources(limits))


def test_cpu_limits(spec: Callable[..., FerrySpec], policy: Policy, limited: Policy) -> None:
    memory = memory_sum(spec(dataset="s3://d/x", dataset_size="1Gi"))
    assert both(memory, agent_limits(BURSTABLE, policy)) == (("100m", None), ("10m", None))
    assert both(memory, agent_limits(BURSTABLE, limited)) == (("100m", "2"), ("50m", "2"))
    equal = (GUARANTEED_CPU, GUARANTEED_CPU)
    assert both(memory, agent_limits(GUARANTEED, policy)) == (equal, equal)
    assert both(memory, agent_limits(GUARANTEED, limited)) == (("2", "2"), ("2", "2"))
    assert parse_quantity(GUARANTEED_CPU) % 1, "a whole number of CPUs would be pinned"


def test_resources_of_a_guaranteed_pod_need_no_limits_of_containers(policy: Policy) -> None:
    pod = {"spec": {**BURSTABLE["spec"], "resources": {"limits": FULL}}}
    assert agent_limits(pod, policy).sidecar.limit is None
    assert cpu_warnings(pod, agent_limits(pod, policy)) == ()


def test_a_cpu_limit_that_the_pod_does_not_set_is_named(policy: Policy, limited: Policy) -> None:
    (warning,) = cpu_warnings(GUARANTEED, agent_limits(GUARANTEED, policy))
    assert "stays Guaranteed" in warning
    assert "500m" in warning
    assert cpu_warnings(BURSTABLE, agent_limits(BURSTABLE, limited)) == ()


@pytest.mark.parametrize("with_pod_level", [False, True])
@pytest.mark.parametrize("settings", [{}, {"outputs": "s3://o/x", "output_size": "1Gi"}])
def test_guaranteed_stays_guaranteed(
    annotated_pod: Callable[..., dict[str, Any]],
    policy: Policy,
    settings: dict[str, str],
    with_pod_level: bool,
) -> None:
    pod = annotated_pod(**settings)
    pod["spec"]["containers"][0]["resources"] = {"limits": FULL, "requests": FULL}
    if with_pod_level:
        pod["spec"]["resources"] = {"limits": {"cpu": "8", "memory": "16Gi"}}
    assert is_guaranteed(pod)
    made = apply(pod, inject(pod, Namespace("team"), policy).patch)
    assert made["spec"]["initContainers"]
    assert is_guaranteed(made)


def test_data_on_disk_is_limited_only_if_the_pod_limits_its_disk(
    spec: Callable[..., FerrySpec], policy: Policy
) -> None:
    memory = memory_sum(spec(dataset="s3://d/x", dataset_size="1Gi", medium="disk"))
    size = f"{(memory.disk + LOG_BYTES) // MIB}Mi"
    free, limited = (
        sidecar_resources(memory, agent_limits(pod, policy)) for pod in (BURSTABLE, LIMITED_DISK)
    )
    assert free["requests"]["ephemeral-storage"] == limited["requests"]["ephemeral-storage"] == size
    assert limited["limits"]["ephemeral-storage"] == size
    assert "ephemeral-storage" not in free["limits"]
    assert disk_limited(LIMITED_DISK)
    assert not disk_limited(BURSTABLE)


def test_a_pod_that_limits_its_disk_limits_all_of_its_containers(
    spec: Callable[..., FerrySpec], policy: Policy
) -> None:
    """Clusters that require such a limit would refuse the pod; and logs count towards the others' limits."""
    memory, limits = (
        memory_sum(spec(dataset="s3://d/x", dataset_size="1Gi")),
        agent_limits(LIMITED_DISK, policy),
    )
    for found in (sidecar_resources(memory, limits), gate_resources(limits)):
        for kind in ("requests", "limits"):
            assert found[kind]["ephemeral-storage"] == f"{LOG_BYTES // MIB}Mi"
    free = agent_limits(BURSTABLE, policy)
    assert "ephemeral-storage" not in str((sidecar_resources(memory, free), gate_resources(free)))
