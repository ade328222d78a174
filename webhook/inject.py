"""Decides on a pod from its JSON, its namespace and the policy: a patch, or the reasons against it. Pure.

not opted in                      untouched
opted in, valid                   injected: sidecar first, gate last, volumes, mounts, environment, stamps
opted in, invalid, controlled     refused: only a gate, which reports the reason and fails the pod
opted in, invalid, bare           denied: `kubectl apply` shows the reason
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.pod_owner import pod_owner_of
from podferry.contract.spec import PREFIX
from podferry.contract.spec_json import encode_spec
from podferry.webhook.container_memory import qos_warnings, raise_memory, shm_warnings
from podferry.webhook.containers import gate, refusing_gate, sidecar
from podferry.webhook.json_patch import Draft, Path
from podferry.webhook.pod_json import (
    GATE,
    Json,
    annotations_of,
    container_index,
    containers_of,
    init_containers_of,
    is_controlled,
)
from podferry.webhook.policy import OnInvalid, Policy
from podferry.webhook.reinvocation import (
    INJECTED,
    POLICY_HASH_STAMP,
    REFUSED,
    SPEC_STAMP,
    STATUS_STAMP,
    is_injected,
    is_refused,
    repair,
)
from podferry.webhook.resolve import Namespace, ResolvedInjection, opted_in, resolve, resolve_injection
from podferry.webhook.security_context import mode_warnings
from podferry.webhook.termination_grace import current_grace, drain_seconds, grace_of
from podferry.webhook.trainer_env import trainer_environment
from podferry.webhook.volumes import has_shm, trainer_mounts, volumes


class InjectionOutcome(StrEnum):
    """What the webhook does with a pod."""

    UNTOUCHED = "untouched"
    INJECTED = "injected"
    REFUSED = "refused"
    DENIED = "denied"


class Decision(msgspec.Struct, frozen=True):
    """The decision on a pod.

    Attributes:
        outcome: What is done with it.
        patch: JSON patch operations; empty if nothing changes.
        warnings: For the pod's author; shown by clients such as kubectl.
        problems: Why it was refused or denied.
    """

    outcome: InjectionOutcome
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def inject(pod: Json, namespace: Namespace, policy: Policy) -> Decision:
    """Decide on a pod that is about to be created; its plain JSON is not modified."""
    if not opted_in(pod):
        return Decision(InjectionOutcome.UNTOUCHED)
    if is_refused(pod):
        return Decision(InjectionOutcome.REFUSED)
    try:
        if is_injected(pod):
            spec = resolve(pod, pod_owner_of(pod, namespace.name), policy).spec
            return Decision(InjectionOutcome.INJECTED, tuple(repair(pod, spec).operations))
        return _injected(pod, resolve_injection(pod, namespace, policy), policy)
    except InvalidSpec as error:
        return _refused(pod, error.problems, policy)


def _injected(pod: Json, injection: ResolvedInjection, policy: Policy) -> Decision:
    draft, container = Draft(pod), containers_of(pod)[injection.trainer_index]
    grace, grace_warnings = grace_of(pod, injection.spec, policy)
    with_shm = not has_shm(container)
    for volume in volumes(injection.spec, injection.memory, with_shm=with_shm):
        draft.append(("spec", "volumes"), volume)
    _add_containers(draft, injection, policy, grace)
    _extend_trainer(draft, injection, policy, with_shm=with_shm)
    memory_warnings = raise_memory(draft, injection.trainer_index, injection.memory, policy)
    if grace != current_grace(pod):
        draft.set(("spec", "terminationGracePeriodSeconds"), grace)
    _stamp(draft, INJECTED, policy, encode_spec(injection.spec).decode())
    shm = shm_warnings(container, injection.memory.shm_volume) if with_shm else _shm_ignored(pod)
    warnings = (
        *injection.reasons,
        *mode_warnings(pod, container, injection.spec),
        *memory_warnings,
        *shm,
        *_outputs_shared(pod, injection),
        *grace_warnings,
        *qos_warnings(pod),
    )
    return Decision(InjectionOutcome.INJECTED, tuple(draft.operations), warnings)


def _add_containers(draft: Draft, injection: ResolvedInjection, policy: Policy, grace: int) -> None:
    """Add the sidecar before all other init containers, the gate after them."""
    path: Path = ("spec", "initContainers")
    draft.insert(path, 0, sidecar(injection, policy, drain_seconds(grace)))
    draft.append(path, gate(injection, policy))


def _extend_trainer(draft: Draft, injection: ResolvedInjection, policy: Policy, *, with_shm: bool) -> None:
    path: Path = ("spec", "containers", injection.trainer_index)
    names = {one["name"] for one in containers_of(draft.document)[injection.trainer_index].get("env") or []}
    for variable in trainer_environment(injection.spec, policy):
        if variable["name"] not in names:
            draft.append((*path, "env"), variable)
    for mount in trainer_mounts(injection.spec, with_shm=with_shm):
        draft.append((*path, "volumeMounts"), mount)


def _stamp(draft: Draft, status: str, policy: Policy, spec: str | None = None) -> None:
    stamps = {STATUS_STAMP: status, SPEC_STAMP: spec, POLICY_HASH_STAMP: policy.digest}
    for name, text in stamps.items():
        if text is not None:
            draft.set(("metadata", "annotations", name), text)


def _shm_ignored(pod: Json) -> tuple[str, ...]:
    key = f"{PREFIX}shm-size"
    if key not in annotations_of(pod):
        return ()
    return (f"{key} has no effect: the training container mounts its own /dev/shm",)


def _outputs_shared(pod: Json, injection: ResolvedInjection) -> tuple[str, ...]:
    key, world = f"{PREFIX}outputs", injection.spec.world
    if injection.spec.outputs is None or world == 1 or "$(rank)" in annotations_of(pod).get(key, ""):
        return ()
    what = f"{key} is one location for {world} pods"
    return (f"{what}: files of the same name overwrite each other; add $(rank)",)


def _refused(pod: Json, problems: Sequence[Problem], policy: Policy) -> Decision:
    if policy.on_invalid is OnInvalid.DENY or not is_controlled(pod):
        return Decision(InjectionOutcome.DENIED, problems=tuple(problems))
    if container_index(init_containers_of(pod), GATE) is not None:
        # A second container of this name would make the pod invalid, and hide the reason.
        return Decision(InjectionOutcome.DENIED, problems=tuple(problems))
    draft = Draft(pod)
    draft.insert(("spec", "initContainers"), 0, refusing_gate(problems, policy))
    _stamp(draft, REFUSED, policy)
    warnings = tuple(f"podferry: {problem}" for problem in problems)
    return Decision(InjectionOutcome.REFUSED, tuple(draft.operations), warnings, tuple(problems))
