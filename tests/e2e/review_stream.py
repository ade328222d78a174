"""Reviews without a pause: pods that opt in are created as a dry run, over several connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator

from tests.cluster.cluster import Cluster
from tests.e2e.bucket import free_port
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace

CONNECTIONS = 4


class ReviewStream:
    """What the API server answered.

    Attributes:
        injected: How many pods were injected.
        failures: Other answers.
        slowest: Seconds that the slowest took.
    """

    def __init__(self, namespace: Namespace, port: int, manifest: Object) -> None:
        self._namespace, self._port, self._body = namespace, port, json.dumps(manifest)
        self._stopped = threading.Event()
        self.injected = 0
        self.slowest = 0.0
        self.failures: list[str] = []

    def run(self) -> None:
        """Create until `stop`."""
        connection = _connection(self._namespace.cluster, self._port)
        with contextlib.closing(connection):
            while not self._stopped.is_set():
                self._create(connection)

    def _create(self, connection: http.client.HTTPConnection) -> None:
        path = f"/api/v1/namespaces/{self._namespace.name}/pods?dryRun=All"
        started = time.monotonic()
        connection.request("POST", path, self._body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        self.slowest = max(self.slowest, time.monotonic() - started)
        if answer.status == http.client.CREATED and '"podferry-gate"' in text:
            self.injected += 1
        else:
            self.failures.append(f"{answer.status}: {text[:500]}")

    def stop(self) -> None:
        """End after the current answers."""
        self._stopped.set()


@contextlib.contextmanager
def review_stream(namespace: Namespace, manifest: Object) -> Iterator[ReviewStream]:
    """Create the pod again and again during the block."""
    cluster = namespace.cluster
    port = free_port(cluster)
    words = [*cluster.backend.kubectl[len(cluster.backend.inside) :], "proxy", f"--port={port}"]
    with cluster.run_in_network([*words, "--address=0.0.0.0", "--accept-hosts=.*"], port=port):
        stream = ReviewStream(namespace, port, manifest)
        threads = [threading.Thread(target=stream.run) for _ in range(CONNECTIONS)]
        for one in threads:
            one.start()
        try:
            yield stream
        finally:
            stream.stop()
            for one in threads:
                one.join()


def _connection(cluster: Cluster, port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(cluster.host_address, port, timeout=60)
    with cluster.network():
        connection.connect()
    return connection
