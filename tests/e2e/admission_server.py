"""An HTTPS server for stand-ins of other people's mutating webhooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.private_ca import self_signed_context

Pod = dict[str, Any]
Patch = Sequence[Mapping[str, Any]]


def admission_server(
    host: str, webhooks: Mapping[str, Callable[[Pod], Patch]]
) -> tuple[ThreadingHTTPServer, str]:
    """A server of webhooks by path, which return the patch of a pod; and the certificate to trust, as PEM."""

    class Reviews(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            patch = json.dumps(webhooks[self.path.partition("?")[0]](review["object"]))
            response = {"uid": review["uid"], "allowed": True, "patchType": "JSONPatch"}
            response |= {"patch": base64.b64encode(patch.encode()).decode()}
            kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            answer(self, {**kind, "response": response})

        def log_message(self, *_: object) -> None:
            """Nothing."""

    context, certificate = self_signed_context(host)
    server = ThreadingHTTPServer((host, 0), Reviews)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server, certificate


def answer(handler: BaseHTTPRequestHandler, document: Any) -> None:
    """Send a JSON document."""
    body = json.dumps(document).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
