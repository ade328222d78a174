from ipaddress import ip_address, ip_network
from typing import Any

from podferry.webhook.injection.agent_address import LOOPBACK, agent_host

Pod = dict[str, Any]


def pod(**spec: Any) -> Pod:
    return {"metadata": {"namespace": "team", "generateName": "digits-"}, "spec": {"containers": [], **spec}}


def test_a_pod_with_a_network_of_its_own_uses_the_usual_address() -> None:
    assert agent_host(pod(), "a") == agent_host(pod(hostNetwork=False), "b") == LOOPBACK


def test_pods_on_the_nodes_network_have_addresses_of_their_own() -> None:
    """Pods of one controller differ in the admission's id alone."""
    hosts = {agent_host(pod(hostNetwork=True), f"request-{number}") for number in range(1000)}
    assert len(hosts) > 995
    for host in hosts:
        assert ip_address(host) in ip_network("127.0.0.0/8")
        assert ip_address(host) not in ip_network("127.0.0.0/16")
        assert host.rpartition(".")[2] not in {"0", "255"}
    assert agent_host(pod(hostNetwork=True), "request-1") in hosts
