"""A pod's annotations and the policy → the resolved ferry spec, and all that is needed to inject it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from podferry.contract.annotations import read_annotations, settings_of
from podferry.contract.cross_validation import gang_problems
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lineage import lineage_of
from podferry.contract.medium import ResolvedMedium, resolve_medium
from podferry.contract.memory import MemorySum, memory_sum
from podferry.contract.pod_owner import KFP, PodOwner, kfp_inputs_of, pod_owner_of, variables_of
from podferry.contract.spec import DatasetSpec, FerrySpec, Unpack
from podferry.webhook.guardrails import guardrail_problems
from podferry.webhook.memory import disk_limited, memory_problems, shm_bytes
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
    """Where a pod is made.

    Attributes:
        name: As the admission request says.
        labels: Its labels, empty where they are not known.
    """

    name: str
    labels: Mapping[str, str] = {}


class ResolvedInjection(msgspec.Struct, frozen=True):
    """Everything about one pod that is to be injected.

    Attributes:
        spec: Its resolved spec: sizes, media, lineage and rank filled in.
        target: Index of the training container.
        runner: As whom the agent runs.
        memory: What its volumes and the agent need.
        run_id: KFP's run, None outside KFP.
        disk_limited: Whether the pod limits what its containers write to the node's disk.
        reasons: Why datasets lie where they do.
    """

    spec: FerrySpec
    target: int
    runner: RunAs
    memory: MemorySum
    run_id: str | None
    disk_limited: bool = False
    reasons: tuple[str, ...] = ()


class _Findings:
    """Collects what is wrong in steps that do not need each other."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def of(self, step: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return step(*arguments)
        except InvalidSpec as error:
            self.problems += [one for one in error.problems if one not in self.problems]
            return None

    def add(self, problems: Iterable[Problem]) -> None:
        self.problems += [one for one in problems if one not in self.problems]


def opted_in(pod: Json) -> bool:
    """Whether the pod opts in and not out; its wishes may still be wrong."""
    wishes = settings_of(annotations_of(pod))
    return bool(wishes) and wishes.get("inject") != "false"


def resolve_injection(pod: Json, namespace: Namespace, policy: Policy) -> ResolvedInjection:
    """What is to be injected into a pod that opts in.

    Raises:
        InvalidSpec: Everything that is wrong with the pod, its annotations or under this policy.
    """
    found = _Findings()
    origin = found.of(pod_owner_of, pod, namespace.name)
    settled = found.of(resolve, pod, origin, policy) if origin else None
    spec = settled.spec if settled else None
    kind = origin.kind if origin else KFP
    wished = spec.container if spec else settings_of(annotations_of(pod)).get("container")
    target = found.of(training_container_of, pod, wished, kind)
    container = containers_of(pod)[target] if target is not None else None
    runner = found.of(run_as_of, pod, container, namespace.labels) if container is not None else None
    found.add(_network_problems(pod))
    memory = None
    if spec is not None:
        memory = found.of(_memory, spec, container, policy)
        found.add(gang_problems(spec, spec.rank))
        found.add(guardrail_problems(spec, policy))
        if container is not None:
            found.add(mount_problems(pod, container, spec))
            found.add(environment_problems(container, spec, policy))
        found.add(memory_problems(memory, policy) if memory is not None else ())
    InvalidSpec.raise_any(found.problems)
    # Each of them is None only where a step has raised.
    assert origin and settled and spec and target is not None and runner and memory  # noqa: PT018, S101
    run = labels_of(pod).get(KFP_RUN) or origin.run_id
    return ResolvedInjection(spec, target, runner, memory, run or None, disk_limited(pod), settled.reasons)


def resolve(pod: Json, origin: PodOwner, policy: Policy) -> ResolvedMedium:
    """The spec with the policy's defaults, the datasets' media, the lineage and the rank filled in.

    Raises:
        InvalidSpec: Everything that is wrong with the annotations.
    """
    variables = variables_of(origin, kfp_inputs_of(pod))
    spec = read_annotations(annotations_of(pod), variables, policy.datasets)
    assert spec is not None  # noqa: S101 - `opted_in` has been asked
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
        lineage=spec.lineage or lineage_of(origin),
        rank=origin.rank,
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
            "the pod uses the node's network, on whose loopback several agents would meet",
            "hostNetwork: true",
            "Remove hostNetwork",
        )
