"""Whether a namespace's ResourceQuotas have room for a pod.

Source: Kubernetes, "Resource Quotas"; the pod evaluator of 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import product
from typing import Any

import msgspec

from podferry.contract.errors import Problem
from podferry.webhook.limits.pod_totals import amounts_of, format_amount, pod_totals
from podferry.webhook.pod.pod_json import Json, all_containers_of, spec_of
from podferry.webhook.pod.quality_of_service import COMPUTE, has_pod_level_resources, is_best_effort

KINDS = ("requests", "limits")
PODS = ("pods", "count/pods")
REMEDIES = {("limits", "cpu"): "Set it; for podferry's containers, sidecarCpuLimit in its policy does"}


class QuotaRow(msgspec.Struct, frozen=True):
    """One resource of a quota.

    Attributes:
        quota: Its name.
        resource: Such as `limits.cpu`.
        used: By others.
        added: By the pod.
        hard: The maximum.
    """

    quota: str
    resource: str
    used: Decimal
    added: Decimal
    hard: Decimal

    @property
    def texts(self) -> tuple[str, str, str]:
        """`used`, `added` and `hard` for people."""
        used, added, hard = (format_amount(self.resource, one) for one in (self.used, self.added, self.hard))
        return used, added, hard


def quota_rows(pod: Json, quota: Json) -> list[QuotaRow]:
    """What the pod adds to each resource of a quota that applies to it and counts what pods use."""
    if not _applies(pod, quota):
        return []
    added, used = _usage(pod), amounts_of(quota.get("status"), "used")
    hard, name = amounts_of(spec_of(quota), "hard"), (quota.get("metadata") or {}).get("name", "")
    return [
        QuotaRow(name, resource, used.get(resource, Decimal(0)), added[resource], most)
        for resource, most in hard.items()
        if resource in added
    ]


def quota_problems(pod: Json, quota: Json) -> Iterator[Problem]:
    """Why the API server would reject the pod."""
    if not _applies(pod, quota):
        return
    name = (quota.get("metadata") or {}).get("name", "")
    yield from _unset(pod, name, spec_of(quota).get("hard") or {})
    for row in quota_rows(pod, quota):
        if row.used + row.added > row.hard:
            used, added, hard = row.texts
            measured = f"{used} used and {added} for the pod; at most {hard}"
            remedy = "Use less, wait for other pods to end, or ask for a larger quota"
            yield Problem(f"ResourceQuota {name}: {row.resource} is exceeded", measured, remedy)


def _unset(pod: Json, name: str, hard: Mapping[str, Any]) -> Iterator[Problem]:
    """Every container must set the CPU and memory that a quota counts, unless the pod itself does."""
    if has_pod_level_resources(pod):
        return
    containers = all_containers_of(pod)
    for kind, resource in product(KINDS, COMPUTE):
        counted = f"{kind}.{resource}" in hard or (kind == "requests" and resource in hard)
        missing = [
            one["name"] for one in containers if resource not in amounts_of(one.get("resources"), kind)
        ]
        if counted and missing:
            what = f"ResourceQuota {name}: containers set no {kind}.{resource}"
            yield Problem(what, ", ".join(missing), REMEDIES.get((kind, resource), "Set it"))


def _usage(pod: Json) -> dict[str, Decimal]:
    requests, limits = (pod_totals(pod, kind) for kind in KINDS)
    return {
        **dict.fromkeys(PODS, Decimal(1)),
        **requests,
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": amount for name, amount in limits.items()},
    }


def _applies(pod: Json, quota: Json) -> bool:
    """Whether the pod is in all scopes of the quota."""
    selected = (spec_of(quota).get("scopeSelector") or {}).get("matchExpressions") or []
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec_of(quota).get("scopes") or []]
    return all(_in_scope(pod, scope) for scope in (*scopes, *selected))


def _in_scope(pod: Json, scope: Json) -> bool:
    spec, values = spec_of(pod), scope.get("values") or []
    priority = spec.get("priorityClassName") or ""
    matched = {
        "Terminating": spec.get("activeDeadlineSeconds") is not None,
        "NotTerminating": spec.get("activeDeadlineSeconds") is None,
        "BestEffort": is_best_effort(pod),
        "NotBestEffort": not is_best_effort(pod),
        "PriorityClass": priority in values if values else bool(priority),
    }.get(str(scope.get("scopeName")), True)
    return matched != (scope.get("operator") in {"NotIn", "DoesNotExist"})
