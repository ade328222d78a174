"""A real Prometheus that scrapes the webhook's replicas, the API server and the kubelets."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.cluster.cluster import Cluster
from tests.e2e import install
from tests.e2e.bucket import free_port
from tests.support.server_binaries import installed

MONITORING = install.ROOT / "deploy" / "components" / "monitoring"
TIMES = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
Json = dict[str, Any]


class Prometheus:
    """Queries, and requests through the API server.

    Attributes:
        targets: Paths of the webhook's metrics at the API server.
        replicas: Paths there of what serves reviews.
    """

    def __init__(self, cluster: Cluster, ports: tuple[int, int], targets: list[str]) -> None:
        self._cluster, self._port, self._proxy = cluster, *ports
        self.targets = targets
        self.replicas = [_reviews(one) for one in targets]

    def query(self, expression: str) -> list[Json]:
        """The current vector of an expression."""
        _, text = self._request(self._port, "GET", f"/api/v1/query?query={quote(expression)}")
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        found: list[Json] = answer["data"]["result"]
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        alerts = json.loads(self._request(self._port, "GET", "/api/v1/alerts")[1])["data"]["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def post(self, path: str, body: str) -> int:
        """The status of a request to the API server, as an administrator."""
        return self._request(self._proxy, "POST", path, body)[0]

    def _request(self, port: int, method: str, path: str, body: str = "") -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._cluster.host_address, port, timeout=60)
        with contextlib.closing(connection):
            with self._cluster.network():
                connection.connect()
            connection.request(method, path, body or None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@contextlib.contextmanager
def prometheus(cluster: Cluster, folder: Path) -> Iterator[Prometheus]:
    """Prometheus with the alerts of deploy/, for the duration of the block."""
    ports = free_port(cluster), free_port(cluster)
    words = [*cluster.backend.kubectl[len(cluster.backend.inside) :], "proxy", f"--port={ports[1]}"]
    proxy = [*words, "--address=0.0.0.0", "--accept-hosts=.*", "--reject-paths=^$", "--reject-methods=^$"]
    replicas = _replicas(cluster)
    nodes = [one["metadata"]["name"] for one in cluster.get("nodes")["items"]]
    paths = {
        "webhook": replicas,
        "apiserver": ["/metrics"],
        # As /metrics/cadvisor, which knows the containers' names only if containerd is at its usual socket.
        "kubelet": [f"/api/v1/nodes/{name}/proxy/metrics/resource" for name in nodes],
    }
    address = f"{cluster.host_address}:{ports[1]}"
    jobs = [_job(f"{name}-{at}", address, one) for name in paths for at, one in enumerate(paths[name])]
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    config = {"global": TIMES, "rule_files": ["rules.yaml"], "scrape_configs": jobs}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    command = [
        str(installed("prometheus")),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=0.0.0.0:{ports[0]}",
    ]
    with (
        cluster.run_in_network(proxy, port=ports[1]),
        cluster.run_in_network(command, port=ports[0], timeout=60),
    ):
        yield Prometheus(cluster, ports, replicas)


def _reviews(target: str) -> str:
    return re.sub(r"/pods/(.*):\d+/proxy/.*", r"/pods/https:\1:8443/proxy", target)


def _job(name: str, address: str, path: str) -> Json:
    return {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [address]}]}


def _replicas(cluster: Cluster) -> list[str]:
    """The metrics of the pods that the PodMonitor selects, as the Prometheus operator reads it."""
    monitor = yaml.safe_load((MONITORING / "pod-monitor.yaml").read_text())
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    labels = ",".join(f"{key}={text}" for key, text in monitor["spec"]["selector"]["matchLabels"].items())
    namespace = monitor["metadata"]["namespace"]
    pods = cluster.get("-n", namespace, "pods", "-l", labels)["items"]
    return [
        f"/api/v1/namespaces/{namespace}/pods/{one['metadata']['name']}:{port['containerPort']}"
        f"/proxy{endpoint['path']}"
        for one in pods
        for port in one["spec"]["containers"][0]["ports"]
        if port["name"] == endpoint["port"]
    ]
