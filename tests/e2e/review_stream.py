"""Reviews without a pause: pods that opt in are created as a dry run, over several connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from kubernetes import client, config

from tests.cluster.cluster import Cluster
from tests.cluster.process import wait_until
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace

CONNECTIONS = 8
RATE = 200.0
"""Reviews per second that are sent, unless the machine is too slow."""


class ReviewStream:
    """What the API server answered.

    Attributes:
        injected: How many pods were injected.
        failures: Other answers.
        slowest: Seconds that the slowest took.
    """

    def __init__(self, namespace: Namespace, manifest: Object, rate: float) -> None:
        self._namespace, self._body = namespace, json.dumps(manifest)
        self._interval = CONNECTIONS / rate
        self._stopped = threading.Event()
        self._started = time.monotonic()
        self.injected = 0
        self.slowest = 0.0
        self.failures: list[str] = []

    def run(self) -> None:
        """Create until `stop`, one in each interval."""
        connection, headers = connection_to(self._namespace.cluster)
        due = time.monotonic()
        with contextlib.closing(connection):
            while not self._stopped.wait(max(0.0, due - time.monotonic())):
                self._create(connection, headers)
                due = max(due + self._interval, time.monotonic() - self._interval)

    def _create(self, connection: http.client.HTTPConnection, headers: dict[str, str]) -> None:
        path = f"/api/v1/namespaces/{self._namespace.name}/pods?dryRun=All"
        started = time.monotonic()
        connection.request("POST", path, self._body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        self.slowest = max(self.slowest, time.monotonic() - started)
        if answer.status == http.client.CREATED and '"podferry-gate"' in text:
            self.injected += 1
        else:
            self.failures.append(f"{answer.status}: {text[:500]}")

    def await_flow(self) -> None:
        """Wait until many pods have been injected, or one has not."""
        wait_until("the stream to flow", lambda: self.failures or self.injected > 20, 60)
        assert self.failures == []

    def figures(self) -> dict[str, float]:
        """What it has measured so far."""
        return {
            "injected": self.injected,
            "failed": len(self.failures),
            "per second": round(self.injected / (time.monotonic() - self._started)),
            "slowest, s": round(self.slowest, 2),
        }

    def stop(self) -> None:
        """End after the current answers."""
        self._stopped.set()


@contextlib.contextmanager
def review_stream(namespace: Namespace, manifest: Object, rate: float = RATE) -> Iterator[ReviewStream]:
    """Create the pod again and again during the block, `rate` times a second."""
    stream = ReviewStream(namespace, manifest, rate)
    threads = [threading.Thread(target=stream.run) for _ in range(CONNECTIONS)]
    for one in threads:
        one.start()
    try:
        yield stream
    finally:
        stream.stop()
        for one in threads:
            one.join()


def connection_to(cluster: Cluster) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    """To the API server itself, with the headers of the administrator: a proxy would need much CPU time."""
    settings = client.Configuration()
    config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings)
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    token = settings.get_api_key_with_prefix("authorization")
    connection = http.client.HTTPSConnection(urlsplit(settings.host).netloc, timeout=60, context=context)
    with cluster.network():
        connection.connect()
    return connection, {"Authorization": token} if token else {}
