"""Applies the policy's rules: the first that selects a pod adds annotations to it. Pure.

What a pod sets itself counts more than what a rule sets. If both name a dataset, checkpoints or outputs, the
rule's other keys for it are left out, since they describe the rule's. Keys of a rule that names none are
defaults, and only apply to what the pod names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from podferry.contract.annotations import settings_of
from podferry.contract.cross_validation import SpecSection, sections_of
from podferry.contract.spec import PREFIX
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import Json, annotations_of
from podferry.webhook.policy.pod_selector import covers, selects
from podferry.webhook.policy.policy import InjectionRule, Policy


class AppliedRule(msgspec.Struct, frozen=True):
    """A rule that selects a pod.

    Attributes:
        rule: The rule.
        added: The annotations that it adds to the pod, by full name.
    """

    rule: InjectionRule
    added: dict[str, str]


def applied_rule(pod: Json, namespace: Namespace, policy: Policy) -> AppliedRule | None:
    """The first rule that selects the pod and adds something to it; None if it has opted out."""
    own = settings_of(annotations_of(pod))
    if own.get("inject") == "false":
        return None
    rule = next((rule for rule in policy.rules if selects(rule.match, pod, namespace)), None)
    if rule is None:
        return None
    added = {name: text for name, text in rule.annotations.items() if _applies(name, rule.annotations, own)}
    return AppliedRule(rule, {PREFIX + name: text for name, text in added.items()}) if added else None


def shadowed_rules(rules: Sequence[InjectionRule]) -> Iterator[tuple[InjectionRule, InjectionRule]]:
    """(rule, earlier rule) for those that never apply, since the earlier one selects all their pods."""
    for index, rule in enumerate(rules):
        earlier = next((one for one in rules[:index] if covers(one.match, rule.match)), None)
        if earlier is not None:
            yield rule, earlier


def requests_something(annotations: Mapping[str, str]) -> bool:
    """Whether these annotations, without the prefix, opt in a pod that has no others."""
    return any(section.key in annotations for section in sections_of(annotations))


def _applies(name: str, rule: Mapping[str, str], own: Mapping[str, str]) -> bool:
    if name in own:
        return False
    section = _section_of(name, {**rule, **own})
    if section is None:
        return True
    in_rule, in_pod = section.key in rule, section.key in own
    return in_rule != in_pod


def _section_of(name: str, settings: Mapping[str, str]) -> SpecSection | None:
    """The dataset or direction that a key belongs to, or that it names; None for keys of the pod."""
    return next((one for one in sections_of(settings) if name == one.key or name in one.keys), None)
