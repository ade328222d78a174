"""Other people's sidecars that carry the pod's traffic, such as the proxies of service meshes.

Native sidecars start in the order of the list and end in reverse. The agent has to reach stores from its
first second to its last: it starts after such a proxy, and ends before it. An ordinary container starts after
the gate, which waits for the agent, and may end before the agent has uploaded what is left.
Source: Kubernetes, "Sidecar Containers" and "Termination of Pods".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podferry.contract.errors import Problem
from podferry.webhook.pod.json_patch import Draft
from podferry.webhook.pod.pod_json import (
    GATE,
    SIDECAR,
    Json,
    annotations_of,
    container_index,
    containers_of,
    init_containers_of,
)
from podferry.webhook.policy.policy import Policy

INIT_CONTAINERS = ("spec", "initContainers")


class MeshProxy(msgspec.Struct, frozen=True):
    """A proxy that a mesh injects, and that may be a native sidecar.

    Attributes:
        native: How to make it one.
        exclusions: Annotations that exclude addresses or ports from it, perhaps those of the store.
    """

    native: str = "Make it a native sidecar: an init container with restartPolicy: Always"
    exclusions: tuple[str, ...] = ()


ISTIO = "traffic.sidecar.istio.io"
KNOWN_PROXIES = {
    "istio-proxy": MeshProxy(
        'Set the pod\'s annotation sidecar.istio.io/nativeSidecar: "true" (istio 1.24 or later), or '
        "ENABLE_NATIVE_SIDECARS=true for istiod",
        (
            f"{ISTIO}/excludeOutboundIPRanges",
            f"{ISTIO}/excludeOutboundPorts",
            f"{ISTIO}/includeOutboundIPRanges",
            f"{ISTIO}/includeOutboundPorts",
        ),
    ),
    "linkerd-proxy": MeshProxy(
        "Set the pod's or namespace's annotation config.beta.linkerd.io/proxy-enable-native-sidecar: "
        '"true" (older versions: config.alpha.linkerd.io)',
        ("config.linkerd.io/skip-outbound-ports", "config.linkerd.io/skip-subnets"),
    ),
    "kuma-sidecar": MeshProxy(
        "Set KUMA_EXPERIMENTAL_SIDECAR_CONTAINERS=true (Helm: experimental.sidecarContainers) for Kuma's "
        "control plane",
        ("traffic.kuma.io/exclude-outbound-ips", "traffic.kuma.io/exclude-outbound-ports"),
    ),
    "consul-dataplane": MeshProxy(
        'Set the pod\'s annotation consul.hashicorp.com/enable-consul-dataplane-as-sidecar: "true"',
        (
            "consul.hashicorp.com/transparent-proxy-exclude-outbound-cidrs",
            "consul.hashicorp.com/transparent-proxy-exclude-outbound-ports",
        ),
    ),
}
"""By the container's name. Sources: the documentation of istio, linkerd, Kuma, and Consul on Kubernetes."""


def sidecar_index(init_containers: list[dict[str, Any]], policy: Policy) -> int:
    """Where the agent goes: right after the last native sidecar that carries traffic, else first."""
    native = (
        index
        for index, one in enumerate(init_containers)
        if one.get("restartPolicy") == "Always" and _carries_traffic(one, policy)
    )
    return max(native, default=-1) + 1


def restore_order(draft: Draft, policy: Policy) -> None:
    """Move agent and gate of an injected pod back behind what another webhook has inserted since."""
    containers = init_containers_of(draft.document)
    agent, place = container_index(containers, SIDECAR), sidecar_index(containers, policy)
    if agent is not None and agent < place:
        draft.move(INIT_CONTAINERS, agent, place - 1)
    containers = init_containers_of(draft.document)
    gate = container_index(containers, GATE)
    if gate is not None and gate < len(containers) - 1:
        draft.move(INIT_CONTAINERS, gate, len(containers) - 1)


def proxy_problems(pod: Json, policy: Policy) -> Iterator[Problem]:
    """Proxies among the ordinary containers, which start after the agent and end before it."""
    for name, proxy in _ordinary_proxies(pod, policy):
        if not _exclusions(pod, proxy):
            what = f"the agent needs {name} to reach stores, but it starts too late and may end too early"
            yield Problem(what, f"{name} is an ordinary container", proxy.native)


def proxy_warnings(pod: Json, policy: Policy) -> tuple[str, ...]:
    """Ordinary proxies that the agent may not need: the pod's annotations exclude some traffic."""
    return tuple(
        f"container {name} is no native sidecar: the agent reaches the store only if "
        f"{', '.join(found)} excludes the store from it"
        for name, proxy in _ordinary_proxies(pod, policy)
        if (found := _exclusions(pod, proxy))
    )


def _ordinary_proxies(pod: Json, policy: Policy) -> Iterator[tuple[str, MeshProxy]]:
    for container in containers_of(pod):
        if _carries_traffic(container, policy):
            yield container["name"], KNOWN_PROXIES.get(container["name"], MeshProxy())


def _exclusions(pod: Json, proxy: MeshProxy) -> list[str]:
    return [name for name in proxy.exclusions if name in annotations_of(pod)]


def _carries_traffic(container: Json, policy: Policy) -> bool:
    return container.get("name") in KNOWN_PROXIES or container.get("name") in policy.network_sidecars
