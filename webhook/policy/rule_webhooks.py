"""Renders the webhook entries that send pods without annotations here, from the policy's rules. Pure.

There is one for each rule that opts pods in, as narrow as the rule: selectors first, since the API server
evaluates them before CEL. They may match more than the rule does, which decides once the pod arrives.
A pod is sent although it has annotations if a rule has set them: the API server calls again after other
webhooks have changed it. Unlike for pods that opt in themselves, a missing webhook stops no pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.spec import PREFIX
from podferry.webhook.policy.pod_selector import GPU_RESOURCES
from podferry.webhook.policy.policy import Enforcement, InjectionRule, PodSelector, Policy
from podferry.webhook.policy.rules import requests_something

RULE_WEBHOOK_SUFFIX = ".rules.podferry.io"
OPTED_IN_WEBHOOK = "pods.podferry.io"
"""The entry of pods that opt in, from which those of the rules take where and how to call the webhook."""
OPTED_IN_CONDITION = "opted-in"
"""The condition of that entry that those of the rules do not share."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has."""
INHERITED = ("admissionReviewVersions", "clientConfig", "rules", "matchPolicy", "sideEffects")
TIMEOUT_SECONDS = 3
"""Pods that do not ask for podferry wait no longer, if the webhook does not answer."""
WILDCARD = re.compile(r"[*?]")
DIRECT_OWNERS = {
    "jobset": "job",
    "trainjob": "job",
    "mpijob": "job",
    "volcanojob": "job",
    "deployment": "replicaset",
    "leaderworkerset": "statefulset",
    "rayjob": "raycluster",
    "kfp": "workflow",
}
"""Kinds that own pods through another kind, which such a pod names; its labels show the owner
(`podferry.contract.pod_owner`). Any other kind is compared with the owners that a pod names."""
Json = Mapping[str, Any]


def with_rule_webhooks(webhooks: Sequence[Json], policy: Policy) -> list[dict[str, Any]]:
    """The entries of a MutatingWebhookConfiguration, those of rules replaced by the policy's.

    They come last: a pod that opts in is then sent once.
    """
    others = [dict(one) for one in webhooks if not str(one.get("name")).endswith(RULE_WEBHOOK_SUFFIX)]
    base = next((one for one in others if one.get("name") == OPTED_IN_WEBHOOK), None)
    return others if base is None else [*others, *(_webhook(rule, base) for rule in _registered(policy))]


def rule_names(policy: Policy) -> list[str]:
    """The rules that have an entry: those that opt pods in, unless the policy is disabled."""
    return [rule.name for rule in _registered(policy)]


def _registered(policy: Policy) -> Iterator[InjectionRule]:
    if policy.enforcement is not Enforcement.DISABLED:
        yield from (rule for rule in policy.rules if requests_something(rule.annotations))


def _webhook(rule: InjectionRule, base: Json) -> dict[str, Any]:
    """The entry of one rule, complete, so that the API server adds no default."""
    return {
        "name": f"{rule.name}{RULE_WEBHOOK_SUFFIX}",
        **{key: base[key] for key in INHERITED if key in base},
        "failurePolicy": "Ignore",
        "matchConditions": [
            *({"name": name, "expression": expression} for name, expression in _conditions(rule.match)),
            *(one for one in base.get("matchConditions") or [] if one.get("name") != OPTED_IN_CONDITION),
        ],
        "namespaceSelector": _namespace_selector(rule.match, base.get("namespaceSelector") or {}),
        "objectSelector": {"matchLabels": dict(rule.match.labels)} if rule.match.labels else {},
        "reinvocationPolicy": "IfNeeded",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }


def _namespace_selector(selector: PodSelector, base: Json) -> dict[str, Any]:
    exact = selector.namespaces and not any(map(WILDCARD.search, selector.namespaces))
    named = [{"key": NAMESPACE_NAME, "operator": "In", "values": list(selector.namespaces)}] if exact else []
    expressions = [*(base.get("matchExpressions") or []), *named]
    labels = {**(base.get("matchLabels") or {}), **selector.namespace_labels}
    return {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }


def _conditions(selector: PodSelector) -> Iterator[tuple[str, str]]:
    """Name and CEL expression of each condition."""
    annotations = "object.metadata.annotations"
    yield (
        "not-opted-in",
        (
            f"!has({annotations}) || '{PREFIX}rule' in {annotations} || "
            f"!{annotations}.exists(key, key.startsWith('{PREFIX}'))"
        ),
    )
    if any(map(WILDCARD.search, selector.namespaces)):
        yield "namespaces", f"request.namespace.matches({_regex(selector.namespaces)})"
    if selector.owners:
        yield "owners", _owned_by({owner.lower() for owner in selector.owners})
    if selector.gpus:
        resources = "has(container.resources) && has(container.resources.limits)"
        named = f"container.resources.limits.exists(name, name.matches({_regex(GPU_RESOURCES)}))"
        yield "gpus", f"object.spec.containers.exists(container, {resources} && {named})"


def _owned_by(owners: set[str]) -> str:
    kinds = sorted({DIRECT_OWNERS.get(owner, owner) for owner in owners} | owners)
    references = "object.metadata.ownerReferences"
    owned = f"{references}.exists(owner, owner.kind.lowerAscii() in {_text(kinds)})"
    return f"!has({references}) || {owned}" if "pod" in owners else f"has({references}) && {owned}"


def _regex(globs: Sequence[str]) -> str:
    parts = (re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".") for glob in globs)
    return _text(f"^({'|'.join(parts)})$")


def _text(value: Any) -> str:
    """A CEL literal of a text or a list of texts, which JSON's are too."""
    return json.dumps(value)
