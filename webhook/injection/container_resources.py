"""CPU, memory and disk of podferry's containers, as the pod and the policy require them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podferry.contract.memory_sum import MemorySum
from podferry.contract.quantity import exact_quantity
from podferry.contract.tmpfs_cost import MIB
from podferry.webhook.pod.json_patch import find
from podferry.webhook.pod.pod_json import Json, all_containers_of
from podferry.webhook.pod.quality_of_service import has_pod_level_resources, is_guaranteed
from podferry.webhook.policy.policy import Policy

STORAGE = "ephemeral-storage"
LOG_BYTES = 64 * MIB
"""Disk space of a container's log: kubelets keep five files of 10 MiB of each."""
GUARANTEED_CPU = "500m"
"""CPU of the agent, and of the gate, in a Guaranteed pod if the policy sets no limit. For a whole number, the
kubelet's static CPU manager would reserve CPUs."""


class Cpu(msgspec.Struct, frozen=True):
    """CPU request and limit of a container; without a limit, the prefetch may use what the node has free."""

    request: str
    limit: str | None = None

    @property
    def limits(self) -> dict[str, str]:
        """As a member of `limits`."""
        return {} if self.limit is None else {"cpu": self.limit}


class AgentLimits(msgspec.Struct, frozen=True):
    """What the pod and the policy require of podferry's containers.

    Attributes:
        sidecar, gate: Their CPU.
        gate_memory: Bytes; request and limit of the gate.
        disk: Whether their use of the node's disk is limited, see `disk_limited`.
    """

    sidecar: Cpu
    gate: Cpu
    gate_memory: int
    disk: bool = False


def agent_limits(pod: Json, policy: Policy) -> AgentLimits:
    """The limits for a pod. One that is Guaranteed stays Guaranteed: its containers need equal CPU limits."""
    defaults, limit = policy.defaults, policy.defaults.sidecar_cpu_limit
    if is_guaranteed(pod) and not has_pod_level_resources(pod):
        cpu = Cpu(limit or GUARANTEED_CPU, limit or GUARANTEED_CPU)
        return AgentLimits(cpu, cpu, defaults.gate_memory, disk_limited(pod))
    sidecar, gate = Cpu(defaults.sidecar_cpu, limit), Cpu(defaults.gate_cpu, limit)
    return AgentLimits(sidecar, gate, defaults.gate_memory, disk_limited(pod))


def sidecar_bytes(memory: MemorySum) -> int:
    """The sidecar's memory limit: the sum, rounded up to MiB."""
    return -(-memory.sidecar // MIB) * MIB


@lru_cache(maxsize=256)
def sidecar_resources(memory: MemorySum, limits: AgentLimits) -> Mapping[str, Any]:
    """The agent's resources: memory request and limit are the sum."""
    size, disk = exact_quantity(sidecar_bytes(memory)), {STORAGE: exact_quantity(memory.disk + LOG_BYTES)}
    requested = disk if memory.disk or limits.disk else {}
    limited = disk if limits.disk else {}
    return {
        "requests": {"cpu": limits.sidecar.request, "memory": size, **requested},
        "limits": {**limits.sidecar.limits, "memory": size, **limited},
    }


@lru_cache(maxsize=64)
def gate_resources(limits: AgentLimits) -> Mapping[str, Any]:
    """The gate's resources: it only polls and waits."""
    disk = {STORAGE: exact_quantity(LOG_BYTES)} if limits.disk else {}
    own = {"memory": exact_quantity(limits.gate_memory), **disk}
    return {"requests": {"cpu": limits.gate.request, **own}, "limits": {**limits.gate.limits, **own}}


def disk_limited(pod: Json) -> bool:
    """Whether a container of the pod has a limit on the node's disk.

    The kubelet adds up the limits that are set and evicts a pod above them, including its emptyDirs. So
    podferry's containers need a limit if others have one, as clusters may require of all containers, but must
    not be the only ones: that would also limit the trainer.
    Source: Kubernetes, "Local ephemeral storage"; `podEphemeralStorageLimitEviction` in the kubelet.
    """
    return any(find(one, ("resources", "limits", STORAGE)) is not None for one in all_containers_of(pod))


def cpu_warnings(pod: Json, limits: AgentLimits) -> tuple[str, ...]:
    """What a Guaranteed pod costs: its prefetch may be slower than without a CPU limit."""
    if limits.sidecar.request != limits.sidecar.limit or not is_guaranteed(pod):
        return ()
    what = f"the pod stays Guaranteed, so podferry's agent has a CPU limit of {limits.sidecar.limit}"
    return (f"{what}; the policy's sidecarCpuLimit sets another one",)
