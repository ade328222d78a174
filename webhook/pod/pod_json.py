"""Accessors for a pod's plain JSON, whose members may be absent or null, as Go encodes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

SIDECAR = "podferry"
GATE = "podferry-gate"


def annotations_of(pod: Json) -> dict[str, str]:
    """Its annotations."""
    return (pod.get("metadata") or {}).get("annotations") or {}


def labels_of(pod: Json) -> dict[str, str]:
    """Its labels."""
    return (pod.get("metadata") or {}).get("labels") or {}


def spec_of(pod: Json) -> dict[str, Any]:
    """Its spec."""
    return pod.get("spec") or {}


def containers_of(pod: Json) -> list[dict[str, Any]]:
    """Its containers, without init containers."""
    return spec_of(pod).get("containers") or []


def init_containers_of(pod: Json) -> list[dict[str, Any]]:
    """Its init containers, including sidecars."""
    return spec_of(pod).get("initContainers") or []


def all_containers_of(pod: Json) -> list[dict[str, Any]]:
    """Its init containers and its containers, in the order in which they start."""
    return [*init_containers_of(pod), *containers_of(pod)]


def volumes_of(pod: Json) -> dict[str, dict[str, Any]]:
    """Its volumes by name."""
    return {volume["name"]: volume for volume in spec_of(pod).get("volumes") or []}


def mounts_of(container: Json) -> list[dict[str, Any]]:
    """A container's mounts."""
    return container.get("volumeMounts") or []


def is_controlled(pod: Json) -> bool:
    """Whether it has a controller, which would silently retry if it were denied."""
    return bool((pod.get("metadata") or {}).get("ownerReferences"))


def container_index(containers: list[dict[str, Any]], name: str) -> int | None:
    """The index of the container of that name, or None."""
    return next((at for at, one in enumerate(containers) if one.get("name") == name), None)


def podferry_names(pod: Json) -> Iterator[str]:
    """Names of podferry's containers in the pod."""
    for container in all_containers_of(pod):
        if container.get("name") in {SIDECAR, GATE}:
            yield f"container {container['name']}"


def escape_dollars(text: str) -> str:
    """Escape a text so that Kubernetes does not change it in `env`, `command` and `args`.

    Source: Kubernetes, "Define dependent environment variables": `$(NAME)` is expanded and `$$` becomes `$`.
    """
    return text.replace("$", "$$")
