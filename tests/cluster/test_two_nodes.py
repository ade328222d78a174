"""Two nodes: pods of each reach those of the other, and their end leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import traces
from tests.cluster.cluster import Cluster
from tests.cluster.helpers import command_line, container, init_of, listening, pod, service
from tests.cluster.layout import Layout
from tests.cluster.node import Node
from tests.cluster.process import patient, wait_until

# Fixtures do not count: the first run builds Kubernetes and the base image, in minutes.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(patient(240), func_only=True)]

FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    assert urllib.request.urlopen(url, timeout=60).status == 200, url
print("reached")
"""


@pytest.fixture
def pair() -> Iterator[Layout]:
    """The layout of a cluster with two nodes."""
    layout = Layout.of(name="pair", nodes=2)
    Node(layout).down()
    yield layout
    Node(layout).down()


def test_pods_reach_pods_and_services_of_the_other_node(pair: Layout) -> None:
    before = traces.of_host()
    cluster = Cluster(Node(pair)).up()
    cluster.load_base_image()
    nodes = cluster.require_nodes(2)
    serve = ("python3", "-m", "http.server", "8080", "--directory", "/etc")
    for node in nodes:
        main = container("main", *serve, readinessProbe=listening(8080))
        cluster.apply(pod(node, main, nodeName=node), service(f"to-{node}", 8080) | _selecting(node))
    for node in nodes:
        cluster.wait(f"pod/{node}", "condition=Ready")
    pods = [f"http://{cluster.get('pod', node)['status']['podIP']}:8080/" for node in nodes]
    services = [f"http://{cluster.get('service', f'to-{node}')['spec']['clusterIP']}/" for node in nodes]
    for node in nodes:
        ask = container("main", "python3", "-c", FETCH, *pods, *services)
        cluster.apply(pod(f"from-{node}", ask, nodeName=node))
    for node in nodes:
        cluster.wait(f"pod/from-{node}", "jsonpath={.status.phase}=Succeeded")
        assert cluster.kubectl("logs", f"from-{node}") == "reached\n"
    namespace = traces.network_namespace(init_of(pair).pid)
    assert namespace
    cluster.down()
    assert traces.of_cluster(pair) == []
    assert traces.users_of_network(namespace) == []
    assert traces.of_host() - before == set()


def _selecting(app: str) -> dict[str, object]:
    return {"spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080}]}}


@pytest.mark.parametrize("moment", ["init.json", "started"])
def test_down_cleans_up_after_an_up_that_was_killed(pair: Layout, moment: str) -> None:
    before = traces.of_host()
    starting = command_line(pair, "up", "--nodes", "2")
    wait_until(f"{moment} to be written", (pair.state / moment).exists, 900, interval=0.005)
    starting.kill()
    starting.wait()
    assert command_line(pair, "down").wait(patient(60)) == 0
    assert traces.of_cluster(pair) == []
    assert traces.of_host() - before == set()
