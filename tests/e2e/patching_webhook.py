"""Another mutating webhook, called after podferry's: it applies a JSON patch to the pods of a namespace."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tests.cluster.cluster import Server
from tests.cluster.process import wait_until
from tests.e2e.admission_server import admission_server
from tests.e2e.namespace import Namespace

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


@contextlib.contextmanager
def patching_webhook(
    namespace: Namespace, *patch: dict[str, Any], name: str = "zz-patching"
) -> Iterator[None]:
    """The webhook for the duration of the block; those of a later name in the alphabet are called later."""
    cluster = namespace.cluster
    command = [sys.executable, "-m", "tests.e2e.patching_webhook", cluster.host_address, json.dumps(patch)]
    with cluster.run_in_network(command) as server:
        address = wait_until("the webhook to listen", lambda: announced_address(server), 30)
        client = {"url": address["url"], "caBundle": base64.b64encode(address["ca"].encode()).decode()}
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(_configuration(name, namespace.name, client)))
        try:
            yield
        finally:
            cluster.kubectl("delete", "mutatingwebhookconfiguration", name)


def announced_address(server: Server) -> dict[str, str] | None:
    """What a stand-in's first line of output says: `url`, and `ca` as PEM; None if it is not complete."""
    line = server.output.partition("\n")[0]
    return json.loads(line) if line.endswith("}") else None


def _configuration(name: str, namespace: str, client: dict[str, str]) -> dict[str, Any]:
    webhook = {
        "name": "other.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "rules": [PODS],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": name}, "webhooks": [webhook]}


def serve(host: str, patch: str) -> None:
    """Serve until killed; the first line of output has the address and the CA."""
    made = json.loads(patch)
    server, ca = admission_server(host, {"/": lambda _: made})
    with server:
        print(json.dumps({"url": f"https://{host}:{server.server_port}/", "ca": ca}), flush=True)
        server.serve_forever()


def main(arguments: Sequence[str]) -> None:
    """`python -m tests.e2e.patching_webhook HOST PATCH`."""
    host, patch = arguments
    serve(host, patch)


if __name__ == "__main__":
    main(sys.argv[1:])
