"""Stand-ins for other people's webhooks: `python -m tests.e2e.other_webhooks HOST`.

`/identity` gives containers what Amazon EKS Pod Identity gives them, `/mesh` adds a native proxy at the end.
A second server hands out credentials for a token. Prints the ports of both, and the certificate to trust.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.e2e.admission_server import Patch, Pod, admission_server, answer
from tests.e2e.bucket import KEY, REGION, SECRET

TOKEN_DIR, TOKEN = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount", "eks-pod-identity-token"
STORE_PORT, CREDENTIALS_PORT = 15001, 15002
"""Of the proxy in a pod."""
IDENTITY = {
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{CREDENTIALS_PORT}/credentials",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{TOKEN_DIR}/{TOKEN}",
    "AWS_REGION": REGION,
}
PROXY_ANNOTATION = "e2e.example.com/proxy"
"""The mesh's container, as JSON."""


def with_identity(pod: Pod) -> Pod:
    """The pod with variables and a token in the containers that it has now."""
    source = {"audience": "pods.eks.amazonaws.com", "expirationSeconds": 3600, "path": TOKEN}
    volume = {"name": TOKEN, "projected": {"sources": [{"serviceAccountToken": source}]}}
    pod["spec"]["volumes"] = [*pod["spec"].get("volumes", []), volume]
    for one in pod["spec"]["containers"]:
        one["env"] = [
            *one.get("env", []),
            *({"name": name, "value": text} for name, text in IDENTITY.items()),
        ]
        mount = {"name": TOKEN, "mountPath": TOKEN_DIR, "readOnly": True}
        one["volumeMounts"] = [*one.get("volumeMounts", []), mount]
    return pod


def with_proxy(pod: Pod) -> Pod:
    """The pod with a native proxy as its last init container."""
    proxy = json.loads(pod["metadata"]["annotations"][PROXY_ANNOTATION])
    containers = pod["spec"].get("initContainers", [])
    if all(one["name"] != proxy["name"] for one in containers):
        pod["spec"]["initContainers"] = [*containers, proxy]
    return pod


def replacing_spec(change: Callable[[Pod], Pod]) -> Callable[[Pod], Patch]:
    """The patch of a change to the pod's spec."""
    return lambda pod: [{"op": "replace", "path": "/spec", "value": change(pod)["spec"]}]


WEBHOOKS = {"/identity": replacing_spec(with_identity), "/mesh": replacing_spec(with_proxy)}


class Credentials(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if not self.headers.get("Authorization", "").startswith("eyJ"):  # of a service account's token
            self.send_error(401)
            return
        expires = "2099-01-01T00:00:00Z"
        answer(self, {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": expires})


def main(host: str) -> None:
    webhooks, certificate = admission_server(host, WEBHOOKS)
    credentials = ThreadingHTTPServer((host, 0), Credentials)
    threading.Thread(target=credentials.serve_forever, daemon=True).start()
    ports = {"webhooks": webhooks.server_port, "credentials": credentials.server_port}
    print("serving", json.dumps({**ports, "ca": base64.b64encode(certificate.encode()).decode()}), flush=True)
    webhooks.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
