"""What a namespace's LimitRanges do to a pod: defaults for its containers, and bounds that reject it.

Source: Kubernetes, "Limit Ranges"; the LimitRanger admission plugin of 1.34. It sets the defaults before
webhooks run, and again after they have changed a pod.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.quantity import parse_quantity
from podferry.webhook.limits.pod_totals import Amounts, amounts_of, format_amount, pod_totals
from podferry.webhook.pod.pod_json import GATE, SIDECAR, Json, all_containers_of, spec_of

POLICY_KEYS = {
    (SIDECAR, "cpu"): "sidecarCpu and sidecarCpuLimit",
    (GATE, "cpu"): "gateCpu and sidecarCpuLimit",
    (GATE, "memory"): "gateMemory",
}
"""What an administrator can set for podferry's containers."""


class Usage(msgspec.Struct, frozen=True):
    """What a container, or the pod, requests and limits."""

    name: str
    requests: Amounts
    limits: Amounts


def with_requests(pod: Json) -> dict[str, Any]:
    """The pod as the API server decodes it: a request that is not set is the limit."""
    made = copy.deepcopy(dict(pod))
    for container in all_containers_of(made):
        resources = container.get("resources") or {}
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    return made


def with_defaults(pod: Json, limit_range: Json) -> dict[str, Any]:
    """The pod with the LimitRange's defaults where a container sets nothing."""
    made = copy.deepcopy(dict(pod))
    for item in _items(limit_range, "Container"):
        for container in all_containers_of(made):
            resources = container["resources"] = container.get("resources") or {}
            for kind, defaults in (("limits", "default"), ("requests", "defaultRequest")):
                resources[kind] = {**(item.get(defaults) or {}), **(resources.get(kind) or {})}
    return made


def limit_range_problems(pod: Json, limit_range: Json) -> Iterator[Problem]:
    """Why the API server would reject the pod, which has the defaults of all LimitRanges."""
    name = (limit_range.get("metadata") or {}).get("name", "")
    for item in _items(limit_range, "Container"):
        for container in all_containers_of(pod):
            resources = container.get("resources")
            usage = Usage(
                container["name"], *(amounts_of(resources, kind) for kind in ("requests", "limits"))
            )
            yield from _violations(f"LimitRange {name}: container {usage.name}", usage, item)
    for item in _items(limit_range, "Pod"):
        total = Usage("", pod_totals(pod, "requests"), pod_totals(pod, "limits"))
        yield from _violations(f"LimitRange {name}: the pod", total, item)


def _violations(what: str, usage: Usage, item: Json) -> Iterator[Problem]:
    bounds = {kind: item.get(kind) or {} for kind in ("min", "max", "maxLimitRequestRatio")}
    for resource, text in bounds["min"].items():
        requested = usage.requests.get(resource, Decimal(0))
        if min(requested, usage.limits.get(resource, requested)) < parse_quantity(str(text)):
            yield _problem(what, usage, resource, f"minimum {text}")
    for resource, text in bounds["max"].items():
        limit = usage.limits.get(resource, Decimal("inf"))
        if max(limit, usage.requests.get(resource, limit)) > parse_quantity(str(text)):
            yield _problem(what, usage, resource, f"maximum {text}")
    for resource, text in bounds["maxLimitRequestRatio"].items():
        if _ratio(usage, resource) > parse_quantity(str(text)):
            yield _problem(what, usage, resource, f"limit at most {text} times the request")


def _ratio(usage: Usage, resource: str) -> Decimal:
    """Limit by request; infinite without both."""
    request, limit = usage.requests.get(resource), usage.limits.get(resource)
    return limit / request if request and limit else Decimal("inf")


def _problem(what: str, usage: Usage, resource: str, bound: str) -> Problem:
    found = ", ".join(
        f"{kind} {format_amount(resource, one[resource])}" if resource in one else f"no {kind}"
        for kind, one in (("request", usage.requests), ("limit", usage.limits))
    )
    keys = POLICY_KEYS.get((usage.name, resource))
    own = "Change the pod, or ask for another LimitRange"
    remedy = f"Ask the administrator to set {keys} in podferry's policy" if keys else own
    return Problem(f"{what}: {resource} is out of bounds", f"{found}; {bound}", remedy)


def _items(limit_range: Json, kind: str) -> Iterator[Mapping[str, Any]]:
    """The items of a type, completed as the API server does when it stores them."""
    for item in spec_of(limit_range).get("limits") or []:
        if item.get("type") == kind:
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            yield {**item, "default": limits, "defaultRequest": requests}
