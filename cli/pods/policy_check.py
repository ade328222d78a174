"""What a policy does to pods: the webhook's decision on each, without a webhook. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podferry.cli.pods.manifests import FoundPod, find_pods, flattened, namespace_of
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import PREFIX
from podferry.webhook.admission.decide import NOT_DONE, decide
from podferry.webhook.injection.inject import InjectionOutcome
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import SIDECAR, annotations_of, container_index, init_containers_of
from podferry.webhook.pod.pod_schema import check_types
from podferry.webhook.pod.stamp import INJECTED, STATUS_STAMP
from podferry.webhook.policy.policy import Policy

ALREADY = "already injected"
MALFORMED = "malformed"
UNSERVED = ("kube-system", "podferry")
"""Namespaces whose pods the manifests in `deploy/base` never send to the webhook."""
Labels = Mapping[str, Mapping[str, str]]


class PodCheck(msgspec.Struct, frozen=True):
    """What the policy does to one pod.

    Attributes:
        pod: Kind and name of the object that holds it.
        namespace: Its namespace.
        outcome: The webhook's, or `ALREADY` for a pod that was injected, or `MALFORMED`.
        rule: The rule that applies to it.
        added: The annotations that the rule adds.
        sidecar: Bytes of the sidecar's memory limit, if it gets one.
        problems: Why it is refused, denied or skipped.
        notes: Warnings, and assumptions about a template's pod.
        before: The outcome with the current policy, if that is known.
    """

    pod: str
    namespace: str
    outcome: str
    rule: str | None = None
    added: dict[str, str] = {}
    sidecar: int | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: str | None = None

    @property
    def outcome_text(self) -> str:
        """The outcome, after that with the current policy if it is another."""
        return self.outcome if self.before in {None, self.outcome} else f"{self.before} -> {self.outcome}"

    @property
    def refused(self) -> bool:
        """Whether it does not run."""
        return self.outcome in NOT_DONE or self.outcome == MALFORMED

    @property
    def added_text(self) -> str:
        """What the rule adds, in one line."""
        return ", ".join(f"{name.removeprefix(PREFIX)}: {text}" for name, text in self.added.items())


def namespaces_of(documents: Iterable[Any]) -> Labels:
    """The labels of all namespaces in the documents, by name."""
    found = {}
    for one in flattened(documents):
        if isinstance(one, dict) and one.get("kind") == "Namespace":
            metadata = one.get("metadata") or {}
            found[str(metadata.get("name"))] = dict(metadata.get("labels") or {})
    return found


def check_pods(
    policy: Policy, documents: Mapping[str, Sequence[Any]], labels: Labels, namespace: str
) -> list[PodCheck]:
    """Decide on every pod in documents, which are given by source.

    Pods that set no namespace are in `namespace`. Raises `InvalidSpec` if an object is malformed.
    """
    pods = [pod for source, found in documents.items() for pod in find_pods(found, source)]
    return [_check(policy, pod, labels, namespace) for pod in pods]


def changed_checks(before: Sequence[PodCheck], after: Sequence[PodCheck]) -> list[PodCheck]:
    """The checks of the same pods with another policy, where they differ in more than notes."""
    return [
        msgspec.structs.replace(new, before=old.outcome)
        for old, new in zip(before, after, strict=True)
        if msgspec.structs.replace(old, notes=()) != msgspec.structs.replace(new, notes=())
    ]


def _check(policy: Policy, found: FoundPod, labels: Labels, default: str) -> PodCheck:
    pod, name = found.complete, namespace_of(found.complete, default)
    if name in UNSERVED:
        notes = (*found.notes, f"pods in {name} are not sent to the webhook")
        return PodCheck(found.title, name, str(InjectionOutcome.UNTOUCHED), notes=notes)
    if annotations_of(pod).get(STATUS_STAMP) == INJECTED:
        return PodCheck(found.title, name, ALREADY)
    if problems := found.problems or _type_problems(pod):
        return PodCheck(found.title, name, MALFORMED, problems=tuple(map(str, problems)))
    notes = found.notes
    if name not in labels and any(_needs_labels(policy)):
        notes = (*notes, f"the labels of namespace {name} are unknown: assumed to have none")
    return _decided(policy, found.title, pod, Namespace(name, labels.get(name, {})), notes)


def _type_problems(pod: Mapping[str, Any]) -> tuple[Problem, ...]:
    try:
        check_types(pod)
    except InvalidSpec as error:
        return error.problems
    return ()


def _decided(
    policy: Policy, title: str, pod: dict[str, Any], namespace: Namespace, notes: tuple[str, ...]
) -> PodCheck:
    """What the webhook decides on a well-formed pod."""
    decision = decide(pod, namespace, policy)
    made = apply(pod, decision.patch)
    return PodCheck(
        title,
        namespace.name,
        str(decision.outcome),
        decision.rule,
        _added(policy, decision.rule, annotations_of(pod), annotations_of(made)),
        _sidecar_memory(made),
        tuple(map(str, decision.problems)),
        (*notes, *decision.warnings),
    )


def _added(
    policy: Policy, rule_name: str | None, own: Mapping[str, str], made: Mapping[str, str]
) -> dict[str, str]:
    """The annotations that a pod has from its rule."""
    rule = next((one for one in policy.rules if one.name == rule_name), None)
    wanted = {PREFIX + key: text for key, text in rule.annotations.items()} if rule else {}
    return {key: text for key, text in wanted.items() if key not in own and key in made}


def _needs_labels(policy: Policy) -> Iterator[bool]:
    yield from (bool(rule.match.namespace_labels) for rule in policy.rules)
    yield from (bool(guardrail.match.namespace_labels) for guardrail in policy.guardrails)


def _sidecar_memory(pod: Mapping[str, Any]) -> int | None:
    containers = init_containers_of(pod)
    index = container_index(containers, SIDECAR)
    return None if index is None else parse_bytes(containers[index]["resources"]["limits"]["memory"])
