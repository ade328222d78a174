"""The quality of service class of a pod: which pods the kubelet evicts first, and whose CPUs it may pin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.webhook.pod.pod_json import Json, all_containers_of, spec_of

COMPUTE = ("cpu", "memory")
"""The resources that count."""


def is_guaranteed(pod: Json) -> bool:
    """Whether its class is Guaranteed.

    Source: Kubernetes, "Pod Quality of Service Classes"; KEP-2837 for resources of the pod, which then decide
    alone.
    """
    if has_pod_level_resources(pod):
        return _is_guaranteed(spec_of(pod)["resources"])
    containers = all_containers_of(pod)
    return bool(containers) and all(_is_guaranteed(one.get("resources") or {}) for one in containers)


def is_best_effort(pod: Json) -> bool:
    """Whether its class is BestEffort: neither CPU nor memory is set anywhere."""
    return not any(_sets_compute(one.get("resources")) for one in (spec_of(pod), *all_containers_of(pod)))


def has_pod_level_resources(pod: Json) -> bool:
    """Whether CPU or memory is set for the pod as a whole."""
    return _sets_compute(spec_of(pod).get("resources"))


def _sets_compute(resources: Mapping[str, Any] | None) -> bool:
    found = resources or {}
    return any(name in (found.get(kind) or {}) for kind in ("requests", "limits") for name in COMPUTE)


def _is_guaranteed(resources: Mapping[str, Any]) -> bool:
    """Limits of both resources, and equal requests; a missing request is its limit."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return all(key in limits and requests.get(key, limits[key]) == limits[key] for key in COMPUTE)
