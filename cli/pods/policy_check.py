"""What a policy does to pods: the webhook's decision on each, without a webhook. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from podferry.cli.pods.manifests import FoundPod, find_pods
from podferry.contract.errors import InvalidSpec
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
from podferry.webhook.policy.policy_yaml import read_policy

POLICY_KEY = "policy.yaml"
"""Key of the ConfigMap in `deploy/base`."""
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


def read_policy_file(text: str, source: str) -> Policy:
    """Read an InjectionPolicy, or the one in a ConfigMap among manifests; raises `InvalidSpec`."""
    try:
        documents = [one for one in _flattened(yaml.safe_load_all(text)) if isinstance(one, dict)]
    except (yaml.YAMLError, ValueError, RecursionError):
        return read_policy(text)  # it says where
    held = [(one.get("data") or {}).get(POLICY_KEY) for one in documents if one.get("kind") == "ConfigMap"]
    if not held:
        return read_policy(text)
    found = [one for one in held if isinstance(one, str)]
    if len(found) != 1:
        what = f"{source} does not have one policy"
        remedy = (
            f"Give an InjectionPolicy, or manifests with one ConfigMap that has it as text in {POLICY_KEY}"
        )
        raise InvalidSpec.of(what, f"{len(held)} ConfigMaps, {len(found)} policies", remedy)
    return read_policy(found[0])


def namespaces_of(documents: Iterable[Any]) -> Labels:
    """The labels of all namespaces in the documents, by name."""
    found = {}
    for one in _flattened(documents):
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
    pod = found.complete
    name = str((pod.get("metadata") or {}).get("namespace") or default)
    notes = found.notes
    if name in UNSERVED:
        note = f"pods in {name} are not sent to the webhook"
        return PodCheck(found.title, name, str(InjectionOutcome.UNTOUCHED), notes=(*notes, note))
    if name not in labels and any(_needs_labels(policy)):
        notes = (*notes, f"the labels of namespace {name} are unknown: assumed to have none")
    if annotations_of(pod).get(STATUS_STAMP) == INJECTED:
        return PodCheck(found.title, name, ALREADY)
    if found.problems:
        return PodCheck(found.title, name, MALFORMED, problems=tuple(map(str, found.problems)))
    try:
        check_types(pod)
    except InvalidSpec as error:
        return PodCheck(found.title, name, MALFORMED, problems=tuple(map(str, error.problems)))
    decision = decide(pod, Namespace(name, labels.get(name, {})), policy)
    made = apply(pod, decision.patch)
    own = annotations_of(pod)
    rule = next((one for one in policy.rules if one.name == decision.rule), None)
    wanted = {PREFIX + key: text for key, text in rule.annotations.items()} if rule else {}
    return PodCheck(
        found.title,
        name,
        str(decision.outcome),
        decision.rule,
        {key: text for key, text in wanted.items() if key not in own and key in annotations_of(made)},
        _sidecar_memory(made),
        tuple(map(str, decision.problems)),
        (*notes, *decision.warnings),
    )


def _needs_labels(policy: Policy) -> Iterator[bool]:
    yield from (bool(rule.match.namespace_labels) for rule in policy.rules)
    yield from (bool(guardrail.match.namespace_labels) for guardrail in policy.guardrails)


def _sidecar_memory(pod: Mapping[str, Any]) -> int | None:
    containers = init_containers_of(pod)
    index = container_index(containers, SIDECAR)
    return None if index is None else parse_bytes(containers[index]["resources"]["limits"]["memory"])


def _flattened(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        yield from items if isinstance(items, list) else [document]
