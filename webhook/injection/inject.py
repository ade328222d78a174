"""Decides on a pod that has opted in, by its JSON, its namespace and the policy. Pure.

The decision is a patch, or the reasons against it:

valid                 injected: sidecar first or after a proxy, gate last, volumes, stamps
only mounts           shared: volumes, mounts, environment, stamps; no agent
invalid, controlled   refused: only a gate, which reports the reason and fails the pod
invalid, bare         denied: `kubectl apply` shows the reason
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.pod_locations import unknown_scheme_warnings
from podferry.contract.spec import PREFIX
from podferry.webhook.injection.caches import cache_volumes, prefer_nodes
from podferry.webhook.injection.container_memory import raise_memory, shm_warnings
from podferry.webhook.injection.container_resources import agent_limits, cpu_warnings
from podferry.webhook.injection.containers import gate, refusing_gate, sidecar
from podferry.webhook.injection.network_sidecars import (
    INIT_CONTAINERS,
    proxy_warnings,
    restore_order,
    sidecar_index,
)
from podferry.webhook.injection.pod_conflicts import (
    exposure_warnings,
    lineage_warnings,
    pod_conflicts,
)
from podferry.webhook.injection.raised_memory import record_raised_memory, restore_raised_memory
from podferry.webhook.injection.reinvocation import is_injected, repair
from podferry.webhook.injection.resolve import ResolvedInjection, resolve_injection
from podferry.webhook.injection.security_context import mode_warnings
from podferry.webhook.injection.shared_caches import require_nodes
from podferry.webhook.injection.termination_grace import current_grace, drain_seconds, grace_of
from podferry.webhook.pod.json_patch import Draft, Path
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import (
    GATE,
    Json,
    all_containers_of,
    annotations_of,
    container_index,
    containers_of,
    init_containers_of,
    is_controlled,
)
from podferry.webhook.pod.pod_lengths import has_room_for_stamps
from podferry.webhook.pod.stamp import (
    INJECTED,
    POLICY_HASH_STAMP,
    REFUSED,
    SHARED,
    SIGNATURE_STAMP,
    SPEC_STAMP,
    STATUS_STAMP,
    UNSIGNED,
    Signer,
)
from podferry.webhook.policy.policy import OnInvalid, Policy

VOLUMES = ("spec", "volumes")


class InjectionOutcome(StrEnum):
    """What the webhook does with a pod."""

    UNTOUCHED = "untouched"
    INJECTED = "injected"
    SHARED = "shared"
    REFUSED = "refused"
    DENIED = "denied"
    SKIPPED = "skipped"
    AUDITED = "audited"
    DISABLED = "disabled"


class Decision(msgspec.Struct, frozen=True):
    """The decision on a pod.

    Attributes:
        outcome: What is done with it.
        patch: JSON patch operations; empty if nothing changes.
        warnings: For the pod's author; shown by clients such as kubectl.
        problems: Why it was refused, denied or skipped.
        rule: Name of the policy's rule that applies to it, if any.
    """

    outcome: InjectionOutcome
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    rule: str | None = None


UNTOUCHED = Decision(InjectionOutcome.UNTOUCHED)


def inject(
    pod: Json, namespace: Namespace, policy: Policy, signer: Signer = UNSIGNED, request: str = ""
) -> Decision:
    """Decide on a pod that has opted in and is about to be created; its plain JSON is not modified.

    `request` is the unique id of its admission.
    """
    stamps = _Stamps(namespace.name, policy, signer)
    try:
        if is_injected(pod):
            return _seen_before(pod, stamps)
        injection = resolve_injection(pod, namespace, policy, request)
        return (_injected if injection.spec.needs_agent else _shared)(pod, injection, stamps)
    except InvalidSpec as error:
        return _refused(pod, error.problems, stamps)


class _Stamps(msgspec.Struct, frozen=True):
    """What the stamps of a pod are made from."""

    namespace: str
    policy: Policy
    signer: Signer

    def set_on(self, draft: Draft, status: str, spec: str | None = None) -> None:
        """Stamp a pod that is complete otherwise."""
        stamps = {STATUS_STAMP: status, SPEC_STAMP: spec, POLICY_HASH_STAMP: self.policy.digest}
        for name, text in stamps.items():
            if text is not None:
                draft.set(("metadata", "annotations", name), text)
        signature = self.signer.sign(draft.document, self.namespace)
        draft.set(("metadata", "annotations", SIGNATURE_STAMP), signature)


def _seen_before(pod: Json, stamps: _Stamps) -> Decision:
    """Decide on a pod with stamps: by what was decided before, since the policy may have changed."""
    draft = repair(pod)
    stamps.signer.verify(pod, stamps.namespace)
    if annotations_of(pod)[STATUS_STAMP] == REFUSED:
        return Decision(InjectionOutcome.REFUSED, tuple(draft.operations))
    if annotations_of(pod)[STATUS_STAMP] == SHARED:
        return Decision(InjectionOutcome.SHARED, tuple(draft.operations))
    # Another webhook may have added to it since.
    InvalidSpec.raise_any(pod_conflicts(pod, stamps.policy))
    restore_order(draft, stamps.policy)
    restore_raised_memory(draft)
    return Decision(InjectionOutcome.INJECTED, tuple(draft.operations), proxy_warnings(pod, stamps.policy))


def _shared(pod: Json, injection: ResolvedInjection, stamps: _Stamps) -> Decision:
    """Only mounts: there is nothing to copy or upload, so no agent."""
    draft = Draft(pod)
    draft.append(VOLUMES, *injection.template.volumes)
    _extend_trainer(draft, injection)
    stamps.set_on(draft, SHARED, injection.spec_json)
    return Decision(InjectionOutcome.SHARED, tuple(draft.operations), _shm_warnings(pod, injection))


def _injected(pod: Json, injection: ResolvedInjection, stamps: _Stamps) -> Decision:
    draft, container, policy = Draft(pod), containers_of(pod)[injection.trainer_index], stamps.policy
    grace, grace_warnings = grace_of(pod, injection.spec, policy)
    draft.append(VOLUMES, *injection.template.volumes, *cache_volumes(injection.caches))
    prefer_nodes(draft, injection.caches)
    require_nodes(draft, injection.spec, injection.sharing)
    _add_containers(draft, injection, policy, grace)
    _extend_trainer(draft, injection)
    memory_warnings = raise_memory(draft, injection.trainer_index, injection.template.memory, policy)
    record_raised_memory(draft, container, injection.trainer_index)
    if grace != current_grace(pod):
        draft.set(("spec", "terminationGracePeriodSeconds"), grace)
    stamps.set_on(draft, INJECTED, injection.spec_json)
    warnings = (
        *injection.reasons,
        *unknown_scheme_warnings(injection.spec),
        *mode_warnings(pod, container, injection.spec),
        *memory_warnings,
        *_shm_warnings(pod, injection),
        *_outputs_shared(pod, injection),
        *grace_warnings,
        *proxy_warnings(pod, policy),
        *exposure_warnings(pod),
        *lineage_warnings(pod, injection.spec),
        *cpu_warnings(pod, injection.limits),
    )
    return Decision(InjectionOutcome.INJECTED, tuple(draft.operations), warnings)


def _add_containers(draft: Draft, injection: ResolvedInjection, policy: Policy, grace: int) -> None:
    """Add the sidecar before all other init containers but those that carry traffic, the gate after them."""
    index = sidecar_index(init_containers_of(draft.document), policy)
    draft.insert(INIT_CONTAINERS, index, sidecar(injection, policy, drain_seconds(grace)))
    draft.append(INIT_CONTAINERS, gate(injection, policy))


def _extend_trainer(draft: Draft, injection: ResolvedInjection) -> None:
    path: Path = ("spec", "containers", injection.trainer_index)
    names = {one["name"] for one in containers_of(draft.document)[injection.trainer_index].get("env") or []}
    draft.append((*path, "env"), *(one for one in injection.environment if one["name"] not in names))
    draft.append((*path, "volumeMounts"), *injection.template.trainer_mounts)


def _shm_warnings(pod: Json, injection: ResolvedInjection) -> tuple[str, ...]:
    if volume := injection.template.memory.shm_volume:
        return shm_warnings(containers_of(pod)[injection.trainer_index], volume)
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


def _refused(pod: Json, problems: Sequence[Problem], stamps: _Stamps) -> Decision:
    # A second container of the gate's name, or too many annotations, would make the pod invalid and hide
    # the reason.
    has_gate = container_index(all_containers_of(pod), GATE) is not None
    denied = stamps.policy.on_invalid is OnInvalid.DENY or not is_controlled(pod)
    if denied or has_gate or not has_room_for_stamps(pod):
        return Decision(InjectionOutcome.DENIED, problems=tuple(problems))
    draft = Draft(pod)
    gate_of_refusal = refusing_gate(problems, stamps.policy, agent_limits(pod, stamps.policy))
    draft.insert(INIT_CONTAINERS, 0, gate_of_refusal)
    stamps.set_on(draft, REFUSED)
    warnings = tuple(f"podferry: {problem}" for problem in problems)
    return Decision(InjectionOutcome.REFUSED, tuple(draft.operations), warnings, tuple(problems))
