"""Resolves a pod's annotations under the policy: its final spec, and everything needed to inject it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from podferry.contract.annotations import read_annotations, settings_of
from podferry.contract.cross_validation import gang_problems
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.medium import ResolvedMedium, resolve_medium
from podferry.contract.memory_sum import MemorySum, memory_sum
from podferry.contract.pod_owner import KFP, PodOwner, kfp_inputs_of, pod_owner_of, variables_of
from podferry.contract.spec import DatasetSpec, FerrySpec, Unpack
from podferry.webhook.container_memory import disk_limited, memory_problems, shm_bytes
from podferry.webhook.guardrails import guardrail_problems
from podferry.webhook.pod_json import Json, annotations_of, containers_of, labels_of, spec_of
from podferry.webhook.policy import Policy
from podferry.webhook.security_context import RunAs, run_as_of
from podferry.webhook.trainer_env import environment_problems
from podferry.webhook.training_container import training_container_of
from podferry.webhook.volumes import has_shm, mount_problems

KFP_RUN = "pipeline/runid"
"""Label of every pod of a KFP run."""
T = TypeVar("T")


class Namespace(msgspec.Struct, frozen=True):
    """The namespace of a pod: its name as in the admission request, and its labels, empty if unknown."""

    name: str
    labels: Mapping[str, str] = {}


class ResolvedInjection(msgspec.Struct, frozen=True):
    """Everything needed to inject one pod.

    Attributes:
        spec: Its resolved spec: sizes, media, lineage and rank filled in.
        trainer_index: Index of the training container.
        run_as: User and group of the agent.
        memory: Memory of its volumes and the agent.
        run_id: KFP's run, or None outside KFP.
        disk_limited: Whether the pod limits its containers' use of the node's disk.
        reasons: Why its datasets are in memory or on disk.
    """

    spec: FerrySpec
    trainer_index: int
    run_as: RunAs
    memory: MemorySum
    run_id: str | None
    disk_limited: bool = False
    reasons: tuple[str, ...] = ()


class _ProblemCollector:
    """Collects the problems of steps that do not depend on each other."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def result_of(self, step: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return step(*arguments)
        except InvalidSpec as error:
            self.add(error.problems)
            return None

    def add(self, problems: Iterable[Problem]) -> None:
        self.problems += [one for one in problems if one not in self.problems]


def opted_in(pod: Json) -> bool:
    """Whether the pod has opted in and not out; its settings may still be invalid."""
    settings = settings_of(annotations_of(pod))
    return bool(settings) and settings.get("inject") != "false"


def resolve_injection(pod: Json, namespace: Namespace, policy: Policy) -> ResolvedInjection:
    """Resolve everything needed to inject a pod that has opted in. Raises `InvalidSpec` with all problems."""
    found = _ProblemCollector()
    owner = found.result_of(pod_owner_of, pod, namespace.name)
    resolved = found.result_of(resolve, pod, owner, policy) if owner else None
    spec = resolved.spec if resolved else None
    name = spec.container if spec else settings_of(annotations_of(pod)).get("container")
    index = found.result_of(training_container_of, pod, name, owner.kind if owner else KFP)
    container = containers_of(pod)[index] if index is not None else None
    run_as = found.result_of(run_as_of, pod, container, namespace.labels) if container is not None else None
    found.add(_network_problems(pod))
    memory = None
    if spec is not None:
        memory = found.result_of(_memory, spec, container, policy)
        found.add(gang_problems(spec, spec.rank))
        found.add(guardrail_problems(spec, policy))
        if container is not None:
            found.add(mount_problems(pod, container, spec))
            found.add(environment_problems(container, spec, policy))
        found.add(memory_problems(memory, policy) if memory is not None else ())
    if found.problems or not (owner and resolved and run_as and memory) or index is None:
        raise InvalidSpec(*found.problems)
    run_id = labels_of(pod).get(KFP_RUN) or owner.run_id or None
    return ResolvedInjection(
        resolved.spec, index, run_as, memory, run_id, disk_limited(pod), resolved.reasons
    )


def resolve(pod: Json, owner: PodOwner, policy: Policy) -> ResolvedMedium:
    """The spec with defaults, the datasets' media, lineage and rank filled in. Raises `InvalidSpec`."""
    variables = variables_of(owner, kfp_inputs_of(pod))
    spec = read_annotations(annotations_of(pod), variables, policy.datasets)
    assert spec is not None  # noqa: S101 - callers have checked `opted_in`
    defaults, replace = policy.defaults, msgspec.structs.replace
    checkpoints, outputs = spec.checkpoints, spec.outputs
    if checkpoints and checkpoints.size is None:
        checkpoints = replace(checkpoints, size=defaults.checkpoint_size)
    if outputs and outputs.size is None:
        outputs = replace(outputs, size=defaults.output_size)
    resolved = replace(
        spec,
        datasets=tuple(
            replace(one, size=defaults.dataset_size) if _needs_size(one) else one for one in spec.datasets
        ),
        checkpoints=checkpoints,
        outputs=outputs,
        lineage=spec.lineage or lineage_of(owner),
        rank=owner.rank,
    )
    return resolve_medium(resolved, policy.bounds.sidecar_memory)


def _needs_size(dataset: DatasetSpec) -> bool:
    packed = dataset.unpack is Unpack.ALWAYS
    return dataset.size is None and (packed or dataset.parsed.bytes is None)


def _memory(spec: FerrySpec, container: Json | None, policy: Policy) -> MemorySum:
    shm = 0 if container is None or has_shm(container) else shm_bytes(container, spec.shm_size, policy)
    return memory_sum(msgspec.structs.replace(spec, shm_size=shm or None))


def _network_problems(pod: Json) -> Iterable[Problem]:
    if spec_of(pod).get("hostNetwork"):
        yield Problem(
            "the pod uses the node's network, on whose loopback several agents would collide",
            "hostNetwork: true",
            "Remove hostNetwork",
        )
