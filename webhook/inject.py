"""The decision: a pod, where it is made and the policy → a patch, or why not. Pure.

not opted in                      untouched
opted in, can be carried out      injected: sidecar first, gate last, volumes, mounts, environment, stamps
opted in, cannot, controlled      refused: a gate alone, which tells the reason and fails the pod
opted in, cannot, bare            denied: `kubectl apply` shows the reason
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
from podferry.webhook.containers import gate, refusing_gate, sidecar
from podferry.webhook.memory import qos_warnings, raise_memory, shm_warnings
from podferry.webhook.patch import Draft, Path
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
from podferry.webhook.termination_grace import drain_seconds, grace_of, own_grace
from podferry.webhook.trainer_env import trainer_environment
from podferry.webhook.volumes import has_shm, trainer_mounts, volumes


class InjectionOutcome(StrEnum):
    """What the webhook does with a pod."""

    UNTOUCHED = "untouched"
    INJECTED = "injected"
    REFUSED = "refused"
    DENIED = "denied"


class Decision(msgspec.Struct, frozen=True):
    """What to answer.

    Attributes:
        outcome: What is done.
        patch: JSON patch operations; empty where nothing changes.
        warnings: What its author should know; the API server shows them where a person asks.
        problems: Why it was refused or denied.
    """

    outcome: InjectionOutcome
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def inject(pod: Json, namespace: Namespace, policy: Policy) -> Decision:
    """Decide on a pod that is about to be created.

    Args:
        pod: Its plain JSON; left as it is.
        namespace: Where it is made.
        policy: What the administrator wants.
    """
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


def _injected(pod: Json, wish: ResolvedInjection, policy: Policy) -> Decision:
    draft, container = Draft(pod), containers_of(pod)[wish.target]
    grace, grace_warnings = grace_of(pod, wish.spec, policy)
    shared = not has_shm(container)
    for volume in volumes(wish.spec, wish.memory, shared=shared):
        draft.append(("spec", "volumes"), volume)
    _containers(draft, wish, policy, grace)
    _trainer(draft, wish, policy, shared=shared)
    memory_warnings = raise_memory(draft, wish.target, wish.memory, policy)
    if grace != own_grace(pod):
        draft.set(("spec", "terminationGracePeriodSeconds"), grace)
    _stamp(draft, INJECTED, policy, encode_spec(wish.spec).decode())
    shm = shm_warnings(container, wish.memory.shm_volume) if shared else _shm_ignored(pod)
    outputs = _outputs_shared(pod, wish)
    warnings = (
        *wish.reasons,
        *mode_warnings(pod, container, wish.spec),
        *memory_warnings,
        *shm,
        *outputs,
        *grace_warnings,
        *qos_warnings(pod),
    )
    return Decision(InjectionOutcome.INJECTED, tuple(draft.operations), warnings)


def _containers(draft: Draft, wish: ResolvedInjection, policy: Policy, grace: int) -> None:
    """The sidecar before all init containers of others, the gate after them."""
    place: Path = ("spec", "initContainers")
    draft.insert(place, 0, sidecar(wish, policy, drain_seconds(grace)))
    draft.append(place, gate(wish, policy))


def _trainer(draft: Draft, wish: ResolvedInjection, policy: Policy, *, shared: bool) -> None:
    place: Path = ("spec", "containers", wish.target)
    names = {one["name"] for one in containers_of(draft.document)[wish.target].get("env") or []}
    for variable in trainer_environment(wish.spec, policy):
        if variable["name"] not in names:
            draft.append((*place, "env"), variable)
    for mount in trainer_mounts(wish.spec, shared=shared):
        draft.append((*place, "volumeMounts"), mount)


def _stamp(draft: Draft, status: str, policy: Policy, spec: str | None = None) -> None:
    stamps = {STATUS_STAMP: status, SPEC_STAMP: spec, POLICY_HASH_STAMP: policy.digest}
    for name, text in stamps.items():
        if text is not None:
            draft.set(("metadata", "annotations", name), text)


def _shm_ignored(pod: Json) -> tuple[str, ...]:
    key = f"{PREFIX}shm-size"
    if key not in annotations_of(pod):
        return ()
    return (f"{key} has no effect: the training container has its own /dev/shm",)


def _outputs_shared(pod: Json, wish: ResolvedInjection) -> tuple[str, ...]:
    key, world = f"{PREFIX}outputs", wish.spec.world
    if wish.spec.outputs is None or world == 1 or "$(rank)" in annotations_of(pod).get(key, ""):
        return ()
    return (f"{key} is one place for {world} pods: files of one name replace each other; add $(rank)",)


def _refused(pod: Json, problems: Sequence[Problem], policy: Policy) -> Decision:
    if policy.on_invalid is OnInvalid.DENY or not is_controlled(pod):
        return Decision(InjectionOutcome.DENIED, problems=tuple(problems))
    if container_index(init_containers_of(pod), GATE) is not None:
        # A second container of that name would make the pod invalid, and the reason would be lost.
        return Decision(InjectionOutcome.DENIED, problems=tuple(problems))
    draft = Draft(pod)
    draft.insert(("spec", "initContainers"), 0, refusing_gate(problems, policy))
    _stamp(draft, REFUSED, policy)
    warnings = tuple(f"podferry: {problem}" for problem in problems)
    return Decision(InjectionOutcome.REFUSED, tuple(draft.operations), warnings, tuple(problems))
