"""Explains what podferry adds to a pod's resources, and whether its namespace has room for them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import msgspec

from podferry.contract.errors import Problem
from podferry.webhook.admission.decide import NOT_DONE, decide
from podferry.webhook.limits.namespace_limits import NamespaceLimits
from podferry.webhook.limits.pod_totals import Amounts, amounts_of, format_amount, pod_totals
from podferry.webhook.limits.resource_quota import QuotaRow
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import Json, all_containers_of
from podferry.webhook.pod.pod_schema import check_types
from podferry.webhook.policy.policy import Policy

COLUMNS = tuple((kind, name) for name in ("cpu", "memory") for kind in ("requests", "limits"))
TOTAL = "the pod"


class ResourceRow(msgspec.Struct, frozen=True):
    """What a container, or the pod, requests and limits, as text; `-` for nothing.

    Attributes:
        name: Of the container, or `TOTAL`.
        before: CPU request and limit, memory request and limit without podferry.
        after: The same with podferry.
    """

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """One text for each, with both values where podferry changes one."""
        pairs = zip(self.before, self.after, strict=True)
        return tuple(new if old in {new, "-"} else f"{old} -> {new}" for old, new in pairs)


class ExplainedResources(msgspec.Struct, frozen=True):
    """The resources of an injected pod.

    Attributes:
        rows: Of every container, then of the pod.
        quotas: What the pod adds to the namespace's quotas.
        warnings: As the webhook gives them.
        problems: Why podferry refuses the pod, or the namespace's limits reject it.
    """

    rows: tuple[ResourceRow, ...] = ()
    quotas: tuple[QuotaRow, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def explain_resources(
    pod: Json, namespace: Namespace, policy: Policy, limits: NamespaceLimits
) -> ExplainedResources:
    """Inject a pod as the webhook would, after the defaults of the namespace. Raises `InvalidSpec`."""
    check_types(pod)
    before = limits.with_defaults(pod)
    decision = decide(before, namespace, policy)
    if decision.outcome in NOT_DONE:
        return ExplainedResources(warnings=decision.warnings, problems=decision.problems)
    after = limits.with_defaults(apply(before, decision.patch))
    return ExplainedResources(
        tuple(_rows(before, after)), limits.quota_rows(after), decision.warnings, limits.problems(after)
    )


def _rows(before: Json, after: Json) -> Iterator[ResourceRow]:
    known = {one["name"]: one.get("resources") for one in all_containers_of(before)}
    for container in all_containers_of(after):
        own, name = container.get("resources"), container["name"]
        yield ResourceRow(name, _texts(known.get(name)), _texts(own))
    totals = ({kind: pod_totals(pod, kind) for kind in ("requests", "limits")} for pod in (before, after))
    yield ResourceRow(TOTAL, *(tuple(_text(one[kind], name) for kind, name in COLUMNS) for one in totals))


def _texts(resources: Json | None) -> tuple[str, ...]:
    return tuple(_text(amounts_of(resources, kind), name) for kind, name in COLUMNS)


def _text(amounts: Amounts, name: str) -> str:
    amount: Decimal | None = amounts.get(name)
    return "-" if amount is None else format_amount(name, amount)
