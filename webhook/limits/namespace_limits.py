"""What a namespace's LimitRanges and ResourceQuotas make of a pod that podferry injects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.webhook.limits.limit_range import limit_range_problems, with_defaults, with_requests
from podferry.webhook.limits.resource_quota import QuotaRow, quota_problems, quota_rows
from podferry.webhook.pod.pod_json import Json

KINDS = ("LimitRange", "ResourceQuota")


class NamespaceLimits(msgspec.Struct, frozen=True):
    """The objects of a namespace that bound its pods, as plain JSON."""

    limit_ranges: tuple[dict[str, Any], ...] = ()
    quotas: tuple[dict[str, Any], ...] = ()

    def with_defaults(self, pod: Json) -> dict[str, Any]:
        """The pod with the defaults of the API server and of all LimitRanges; the first default wins."""
        made = with_requests(pod)
        for one in self.limit_ranges:
            made = with_defaults(made, one)
        return made

    def problems(self, pod: Json) -> tuple[Problem, ...]:
        """Why the API server would reject a pod; it has the defaults already."""
        ranges = (problem for one in self.limit_ranges for problem in limit_range_problems(pod, one))
        quotas = (problem for one in self.quotas for problem in quota_problems(pod, one))
        return (*ranges, *quotas)

    def quota_rows(self, pod: Json) -> tuple[QuotaRow, ...]:
        """What the pod adds to the quotas."""
        return tuple(row for one in self.quotas for row in quota_rows(pod, one))


def limits_from(documents: Sequence[Any]) -> NamespaceLimits:
    """The limits in decoded objects or lists of them. Raises `InvalidSpec` if there are none."""
    objects = [item for document in documents for item in _items(document)]
    found = {kind: tuple(one for one in objects if one.get("kind") == kind) for kind in KINDS}
    if not any(found.values()):
        kinds = ", ".join(str(one.get("kind")) for one in objects) or "no object"
        remedy = "Give the output of `kubectl get limitrange,resourcequota -n NAMESPACE -o yaml`"
        raise InvalidSpec.of("there is neither a LimitRange nor a ResourceQuota", kinds, remedy)
    return NamespaceLimits(found["LimitRange"], found["ResourceQuota"])


def _items(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    items = document.get("items", [document])
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
