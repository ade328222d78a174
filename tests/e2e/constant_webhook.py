"""A stand-in for podferry's webhook that decides nothing: every review gets the same patch, at once.

What a pod's creation takes with it is what it takes the API server to call any webhook, over a kept
connection, and to apply a patch of that size.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import uvloop

from tests.cluster.process import wait_until
from tests.e2e import install
from tests.e2e.namespace import Namespace
from tests.e2e.patching_webhook import announced_address
from tests.support.private_ca import self_signed_context

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
UID = re.compile(rb'"uid":"([^"]+)"')
"""The first one is the request's."""


@contextlib.contextmanager
def constant_webhook(namespace: Namespace, patch: Sequence[dict[str, Any]]) -> Iterator[None]:
    """The stand-in instead of podferry's webhook, for pods that opt in; the admission policy stays."""
    cluster = namespace.cluster
    entries = cluster.get(*install.WEBHOOKS[0])["webhooks"]
    opted_in = next(one for one in entries if one["name"] == "pods.podferry.io")
    command = [sys.executable, "-m", "tests.e2e.constant_webhook", cluster.host_address, json.dumps(patch)]
    with install.not_registered(cluster, install.WEBHOOKS), cluster.run_in_network(command) as server:
        address = wait_until("the stand-in to listen", lambda: announced_address(server), 30)
        client = {"url": address["url"], "caBundle": base64.b64encode(address["ca"].encode()).decode()}
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
        made = {**kind, "metadata": {"name": "constant"}, "webhooks": [{**opted_in, "clientConfig": client}]}
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(made))
        try:
            wait_until("the stand-in to be called", lambda: install.injects(cluster), 60, interval=0.5)
            yield
        finally:
            cluster.kubectl("delete", "mutatingwebhookconfiguration", "constant")


class ConstantAnswers(asyncio.Protocol):
    """HTTP/1.1, as far as an API server uses it: one request after another, each with its length."""

    def __init__(self, patch: bytes) -> None:
        response = {"uid": "UID", "allowed": True, "patchType": "JSONPatch"}
        response |= {"patch": base64.b64encode(patch).decode()}
        kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        self._response = json.dumps({**kind, "response": response}).encode()
        self._arrived = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport: Any = transport  # uvloop's is no `asyncio.Transport`

    def data_received(self, data: bytes) -> None:
        """Answer a request that is complete."""
        self._arrived += data
        head, _, body = self._arrived.partition(b"\r\n\r\n")
        length, uid = LENGTH.search(head), UID.search(body)
        if length and uid and len(body) >= int(length[1]):
            answer = self._response.replace(b"UID", uid[1], 1)
            lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(answer)}"]
            self._transport.write("\r\n".join([*lines, "", ""]).encode() + answer)
            self._arrived = b""


async def serve(host: str, patch: str) -> None:
    """Serve until killed; the first line of output has the address and the CA."""
    context, ca = self_signed_context(host)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ConstantAnswers(patch.encode()), host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"https://{host}:{port}/", "ca": ca}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(*sys.argv[1:]))
