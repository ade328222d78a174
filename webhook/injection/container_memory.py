"""Raises memory in a pod: the trainer's by what it writes, pod-level resources by what podferry adds."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.contract.errors import Problem
from podferry.contract.memory_sum import MemorySum
from podferry.contract.quantity import exact_quantity, format_bytes, parse_bytes, parse_quantity
from podferry.contract.spec import PREFIX
from podferry.contract.tmpfs_cost import MIB
from podferry.webhook.injection.container_resources import sidecar_bytes
from podferry.webhook.pod.json_patch import Draft, Path, find
from podferry.webhook.pod.pod_json import Json, containers_of, spec_of
from podferry.webhook.policy.policy import Policy

RUNTIME_SHM_BYTES = 64 * MIB
"""Size of /dev/shm in container runtimes without a volume."""
RESOURCE_KINDS = ("requests", "limits")


def shm_bytes(container: Json, requested: int | None, policy: Policy) -> int:
    """Size of the trainer's `/dev/shm`: as requested, else the policy's, but at most half of its limit.

    Its contents count towards the trainer's limit: the volume must be full before the trainer is OOM-killed.
    """
    if requested is not None:
        return requested
    limit = _limit(container)
    if limit is None:
        return policy.defaults.shm_size
    return min(policy.defaults.shm_size, max(limit // 2 // MIB * MIB, RUNTIME_SHM_BYTES))


def shm_warnings(container: Json, size: int) -> tuple[str, ...]:
    """A warning if the trainer may be OOM-killed before its `/dev/shm` is full."""
    limit = _limit(container)
    if limit is None or size < limit:
        return ()
    measured = f"its /dev/shm of {format_bytes(size)} is not below its memory limit of {format_bytes(limit)}"
    return (f"container {container.get('name')}: {measured}: it may be OOM-killed before it is full",)


def memory_problems(memory: MemorySum, policy: Policy) -> Iterator[Problem]:
    """Why the policy does not allow this memory, if so."""
    bound = policy.bounds.sidecar_memory
    if memory.sidecar > bound:
        parts = ", ".join(f"{row.what} {format_bytes(row.bytes)}" for row in memory.sidecar_rows())
        smaller = (
            f"Set {PREFIX}medium to disk or auto, give each pod a part with {PREFIX}shard, use a smaller "
            f"dataset or {PREFIX}dataset-size"
            if memory.data_volume
            else "Use smaller checkpoints or fewer files"
        )
        yield Problem(
            "the sidecar would need more memory than the policy allows",
            f"{format_bytes(memory.sidecar)} = {parts}; allowed {format_bytes(bound)}",
            f"{smaller}, or ask the cluster's administrator",
        )


def raise_memory(draft: Draft, trainer_index: int, memory: MemorySum, policy: Policy) -> tuple[str, ...]:
    """Raise the trainer's memory for what it writes, at most by the policy's bound; return warnings.

    Raises:
        InvalidSpec: The pod has an invalid quantity.
    """
    added = min(memory.trainer, policy.bounds.trainer_raise)
    name = containers_of(draft.document)[trainer_index].get("name")
    path: Path = ("spec", "containers", trainer_index, "resources")
    before = find(draft.document, (*path, "limits", "memory"))
    for kind in RESOURCE_KINDS:
        _raise_bytes(draft, (*path, kind, "memory"), added)
    warnings = []
    if before is not None and added < memory.trainer:
        warnings.append(
            f"container {name}: what it writes takes {format_bytes(memory.trainer)} of memory, but the "
            f"policy raises its limit of {before} only by {format_bytes(added)}: it may be OOM-killed"
        )
    return (*warnings, *_raise_pod_level(draft, sidecar_bytes(memory) + added, policy))


def _limit(container: Json) -> int | None:
    found = find(container, ("resources", "limits", "memory"))
    return None if found is None else parse_bytes(str(found))


def _raise_pod_level(draft: Draft, added: int, policy: Policy) -> tuple[str, ...]:
    """Raise pod-level requests and limits by what is added to the containers, which must fit into them.

    Source: KEP-2837. Otherwise the API server rejects the pod, or its trainer is OOM-killed.
    """
    if not spec_of(draft.document).get("resources"):
        return ()
    path: Path = ("spec", "resources")
    raised = [_raise_bytes(draft, (*path, kind, "memory"), added) for kind in RESOURCE_KINDS]
    raised_cpu = [
        _raise_cpu(draft, (*path, kind, "cpu"), policy.defaults.sidecar_cpu) for kind in RESOURCE_KINDS
    ]
    parts = [
        *([f"{format_bytes(added)} of memory"] if any(raised) else []),
        *([f"{policy.defaults.sidecar_cpu} of CPU"] if any(raised_cpu) else []),
    ]
    return (f"the pod-level resources were raised by {' and '.join(parts)} for podferry",) if parts else ()


def _raise_cpu(draft: Draft, path: Path, added: str) -> bool:
    before = find(draft.document, path)
    if before is None:
        return False
    total = parse_quantity(str(before)) + parse_quantity(added)
    draft.set(path, f"{int(total * 1000)}m")
    return True


def _raise_bytes(draft: Draft, path: Path, added: int) -> bool:
    before = find(draft.document, path)
    if before is None or not added:
        return False
    draft.set(path, exact_quantity(parse_bytes(str(before)) + added))
    return True
