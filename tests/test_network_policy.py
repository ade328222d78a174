"""The NetworkPolicy by the rules of Kubernetes: what may reach the webhook, and what it may reach.

The tests' cluster has a network that enforces none; this evaluates what networks enforce.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.contract.location_guards import METADATA_NETWORKS

BASE = Path(__file__).parents[1] / "deploy" / "base"
(POLICY,) = yaml.safe_load_all((BASE / "network-policy.yaml").read_text())
TEMPLATE = yaml.safe_load((BASE / "deployment.yaml").read_text())["spec"]["template"]
(CONTAINER,) = TEMPLATE["spec"]["containers"]
PORTS = {one["name"]: one["containerPort"] for one in CONTAINER["ports"]}
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Peer:
    """The other end of a connection.

    Attributes:
        namespace: Labels of its namespace; None if it is no pod, as API servers, kubelets and nodes are none.
        labels: Of the pod.
    """

    namespace: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None


OUTSIDE = Peer()


def in_namespace(name: str) -> Peer:
    return Peer({"kubernetes.io/metadata.name": name}, {"app": "any"})


def permits(direction: str, peer: Peer, port: int) -> bool:
    """Whether a TCP connection of a replica of the webhook is permitted; all that is not isolated is.

    Source: Kubernetes, "Network Policies".
    """
    spec = POLICY["spec"]
    assert selects(spec["podSelector"], TEMPLATE["metadata"]["labels"])
    if direction not in spec["policyTypes"]:
        return True
    ends = {"Ingress": "from", "Egress": "to"}[direction]
    rules = spec.get(direction.lower(), [])
    return any(_peers(rule.get(ends), peer) and _ports(rule.get("ports"), port) for rule in rules)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}, "matchExpressions are not evaluated here"
    return selector.get("matchLabels", {}).items() <= labels.items()


def _peers(allowed: list[Object] | None, peer: Peer) -> bool:
    """Without a list, everything is meant; pods only by a selector of their own, or of their namespace."""
    return not allowed or any(_is(one, peer) for one in allowed)


def _is(allowed: Object, peer: Peer) -> bool:
    assert set(allowed) <= {"namespaceSelector", "podSelector"}, "ipBlock is not evaluated here"
    if peer.namespace is None or peer.labels is None:
        return False
    own = {"matchLabels": {"kubernetes.io/metadata.name": "podferry"}}
    namespaces, pods = allowed.get("namespaceSelector", own), allowed.get("podSelector", {})
    return selects(namespaces, peer.namespace) and selects(pods, peer.labels)


def _ports(allowed: list[Object] | None, port: int) -> bool:
    return not allowed or any(
        one["protocol"] == "TCP" and PORTS.get(one["port"], one["port"]) == port for one in allowed
    )


def test_api_servers_reach_reviews_and_kubelets_the_probes() -> None:
    """Both connect from outside of the pods' network, or from a node's address."""
    probes = [CONTAINER[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "readiness", "liveness")]
    for port in {PORTS["https"], *(PORTS[name] for name in probes)}:
        assert permits("Ingress", OUTSIDE, port)


def test_an_api_server_that_is_a_pod_reaches_reviews() -> None:
    """In hosted clusters it, or the tunnel to it, may be one."""
    assert permits("Ingress", in_namespace("kube-system"), PORTS["https"])


def test_prometheus_reaches_the_metrics_and_nothing_else_does() -> None:
    assert permits("Ingress", in_namespace("monitoring"), PORTS["metrics"])
    for peer in (OUTSIDE, in_namespace("podferry"), in_namespace("team")):
        assert not permits("Ingress", peer, PORTS["metrics"])


@pytest.mark.parametrize("peer", [OUTSIDE, in_namespace("monitoring"), in_namespace("podferry")])
def test_no_other_port_is_reached(peer: Peer) -> None:
    assert [
        port for port in range(1, 65536) if permits("Ingress", peer, port) and port not in PORTS.values()
    ] == []


def test_the_webhook_reaches_the_api_server() -> None:
    for port in (443, 6443):
        assert permits("Egress", OUTSIDE, port)


def test_the_example_for_pods_lets_nobody_reach_a_metadata_service() -> None:
    """Its addresses are those that the guards refuse by name."""
    page = (BASE.parents[1] / "docs" / "policy.md").read_text()
    (text,) = (
        block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "NetworkPolicy" in block
    )
    dns, stores = yaml.safe_load(text)["spec"]["egress"]
    assert {one["port"] for one in dns["ports"]} == {53}
    (peer,) = stores["to"]
    excluded = [ip_network(one) for one in peer["ipBlock"]["except"]]
    metadata = [network for network in METADATA_NETWORKS if network.version == 4]
    assert sorted(map(str, excluded)) == sorted(map(str, metadata))
    assert {one["port"] for one in stores["ports"]} == {443, 22, 445}
