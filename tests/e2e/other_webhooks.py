"""Stand-ins for other people's webhooks: `python -m tests.e2e.other_webhooks HOST`.

`/identity` gives containers what Amazon EKS Pod Identity gives them, `/mesh` adds a native proxy at the end.
A second server hands out credentials for a token. Prints the ports of both, and the certificate to trust.
"""

from __future__ import annotations

import base64
import copy
import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.e2e.bucket import KEY, REGION, SECRET
from tests.support.private_ca import self_signed_context

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
Pod = dict[str, Any]


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


WEBHOOKS: dict[str, Callable[[Pod], Pod]] = {"/identity": with_identity, "/mesh": with_proxy}


class Webhooks(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        path = self.path.partition("?")[0]
        changed = WEBHOOKS[path](copy.deepcopy(review["object"]))
        patch = [{"op": "replace", "path": "/spec", "value": changed["spec"]}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        response = {"uid": review["uid"], "allowed": True, "patchType": "JSONPatch", "patch": encoded}
        answer(self, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


class Credentials(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if not self.headers.get("Authorization", "").startswith("eyJ"):  # of a service account's token
            self.send_error(401)
            return
        expires = "2099-01-01T00:00:00Z"
        answer(self, {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": expires})


def answer(handler: BaseHTTPRequestHandler, document: Any) -> None:
    body = json.dumps(document).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def main(host: str) -> None:
    context, certificate = self_signed_context(host)
    webhooks = ThreadingHTTPServer((host, 0), Webhooks)
    webhooks.socket = context.wrap_socket(webhooks.socket, server_side=True)
    credentials = ThreadingHTTPServer((host, 0), Credentials)
    threading.Thread(target=credentials.serve_forever, daemon=True).start()
    ports = {"webhooks": webhooks.server_port, "credentials": credentials.server_port}
    print("serving", json.dumps({**ports, "ca": base64.b64encode(certificate.encode()).decode()}), flush=True)
    webhooks.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
