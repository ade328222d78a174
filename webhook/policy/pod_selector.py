"""Decides which pods a rule selects. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_owner import pod_owner_of
from podferry.contract.quantity import parse_quantity
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import Json, containers_of, labels_of
from podferry.webhook.policy.policy import PodSelector

GPU_RESOURCES = ("*/gpu", "*/gpu.shared", "*/xpu", "*/vgpu", "nvidia.com/mig-*", "gpu.intel.com/*")
"""Globs over the names of extended resources that device plugins of GPUs register."""


def selects(selector: PodSelector, pod: Json, namespace: Namespace) -> bool:
    """Whether the pod fulfils everything that the selector sets."""
    owners = {owner.lower() for owner in selector.owners}
    return (
        namespace.is_named(selector.namespaces)
        and namespace.has_labels(selector.namespace_labels)
        and selector.labels.items() <= labels_of(pod).items()
        and (not owners or not owners.isdisjoint(owner_kinds(pod)))
        and (not selector.gpus or gpus_of(pod) >= selector.gpus)
    )


def covers(wide: PodSelector, narrow: PodSelector) -> bool:
    """Whether everything that `narrow` selects is selected by `wide`, as far as their texts show it."""
    return (
        _covers_names(wide.namespaces, narrow.namespaces)
        and wide.namespace_labels.items() <= narrow.namespace_labels.items()
        and wide.labels.items() <= narrow.labels.items()
        and _covers_names(wide.owners, narrow.owners)
        and wide.gpus <= narrow.gpus
    )


def _covers_names(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    return not wide or "*" in wide or bool(narrow and set(narrow) <= set(wide))


def owner_kinds(pod: Json) -> Iterator[str]:
    """The kinds of its direct owner and of the topmost known one, lower case; `pod` without an owner."""
    owners = (pod.get("metadata") or {}).get("ownerReferences") or []
    yield from (str(owner.get("kind", "")).lower() for owner in owners if owner.get("controller"))
    try:
        yield pod_owner_of(pod).kind
    except InvalidSpec:  # an unreadable KFP step, whose direct owner counts all the same
        return


def gpus_of(pod: Json) -> int:
    """The number of GPUs that its containers request."""
    return int(sum(map(_gpus, containers_of(pod)), Decimal(0)))


def _gpus(container: Mapping[str, Any]) -> Decimal:
    resources = container.get("resources") or {}
    # The limit of an extended resource is also its request.
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    named = (text for name, text in asked.items() if any(fnmatchcase(name, glob) for glob in GPU_RESOURCES))
    return sum((_quantity(text) for text in named), Decimal(0))


def _quantity(text: Any) -> Decimal:
    try:
        return Decimal(parse_quantity(str(text)))
    except InvalidSpec:  # the API server rejects it
        return Decimal(0)
