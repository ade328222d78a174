"""What a pod requests and limits in total, as the scheduler, quotas and LimitRanges count it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from podferry.contract.quantity import format_bytes, parse_quantity
from podferry.webhook.pod.pod_json import Json, containers_of, init_containers_of, spec_of
from podferry.webhook.pod.quality_of_service import COMPUTE

Amounts = dict[str, Decimal]
"""By resource, such as `cpu`."""


BYTES = ("memory", "storage", "hugepages-")
"""Parts of the names of resources that are counted in bytes."""


def format_amount(resource: str, amount: Decimal) -> str:
    """An amount for people: `1.5 GiB`, `0.5`."""
    if any(part in resource for part in BYTES):
        return format_bytes(int(amount))
    return f"{amount.normalize():f}"


def amounts_of(resources: Json | None, kind: str) -> Amounts:
    """The `requests` or `limits` of one container."""
    found = (resources or {}).get(kind) or {}
    return {name: parse_quantity(str(amount)) for name, amount in found.items()}


def pod_totals(pod: Json, kind: str) -> Amounts:
    """The pod's `requests` or `limits`.

    Containers and sidecars add up. An init container needs its own amount on top of the sidecars before it;
    the largest of these and of the sum counts. Resources of the pod replace the sum of its containers.
    Source: KEP-753, "Resources calculation"; KEP-2837.
    """
    total = _sum(amounts_of(one.get("resources"), kind) for one in containers_of(pod))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in init_containers_of(pod):
        own = amounts_of(container.get("resources"), kind)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum((total, own)), _sum((sidecars, own))
            peak = _largest(peak, sidecars)
        else:
            peak = _largest(peak, _sum((sidecars, own)))
    of_pod = amounts_of(spec_of(pod).get("resources"), kind)
    overhead = {"requests": spec_of(pod).get("overhead")}
    counted = {**_largest(total, peak), **{name: of_pod[name] for name in COMPUTE if name in of_pod}}
    return _sum((counted, amounts_of(overhead, kind)))


def _sum(parts: Iterable[Mapping[str, Decimal]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, Decimal(0)), other.get(name, Decimal(0))) for name in {**one, **other}}
