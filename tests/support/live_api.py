"""A stand-in for the API server of a cluster on loopback: objects, tokens, and holders behind its proxy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

Json = dict[str, Any]
PLURALS = {
    "Service": "/api/v1/{}services",
    "ServiceAccount": "/api/v1/{}serviceaccounts",
    "PersistentVolume": "/api/v1/{}persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/{}persistentvolumeclaims",
    "Pod": "/api/v1/{}pods",
    "Event": "/api/v1/{}events",
    "Job": "/apis/batch/v1/{}jobs",
    "CronJob": "/apis/batch/v1/{}cronjobs",
    "StatefulSet": "/apis/apps/v1/{}statefulsets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/{}roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/{}rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/{}clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/{}clusterrolebindings",
}
CREATED = "2026-01-01T00:00:00Z"
TOKEN = "of-the-holders"


class LiveApi:
    """What the cluster has.

    Attributes:
        objects: By path.
        holders: Answers of holders: status and document, by `METHOD POD PATH`.
        asked: `METHOD PATH?QUERY` of each request.
        missing: Paths that are not there, whatever else is.
        failure: The status of every answer, if it is set.
        on_patch: Called with each object that was patched.
        authorizations: The header of this name of each request.
        url: Where it listens.
        kubeconfig: The file that names the server.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.objects: dict[str, Json] = {}
        self.holders: dict[str, Callable[[Json], tuple[int, bytes]]] = {}
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.url = ""
        self.missing: set[str] = set()
        self.failure: int | None = None
        self.on_patch: Callable[[Json], None] = lambda _: None

    def add(self, document: Json) -> None:
        """Add an object."""
        metadata = {**document["metadata"], "creationTimestamp": CREATED, "resourceVersion": "1"}
        where = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
        path = PLURALS[document["kind"]].format(where)
        self.objects[f"{path}/{metadata['name']}"] = {**document, "metadata": metadata}

    def answer(self, method: str, url: str, body: Json, token: str | None) -> tuple[int, bytes]:
        """Status and body of an answer."""
        parts = urlsplit(url)
        path, query = parts.path, dict(parse_qsl(parts.query))
        self.asked.append(f"{method} {url}")
        if self.failure is not None or path in self.missing:
            return self.failure or 404, b"{}"
        if "/proxy/" in path:
            pod, _, rest = path.rpartition("/pods/")[2].partition(":8091/proxy")
            holder = self.holders.get(f"{method} {pod} {rest}")
            return holder(body) if holder and token == TOKEN else (503, b"no endpoints available")
        if path.endswith("/token"):
            return 201, json.dumps({"status": {"token": TOKEN}}).encode()
        if path in self.objects:
            return 200, json.dumps(self._object(method, path, body)).encode()
        if path.rpartition("/")[2] not in {plural.rpartition("}")[2] for plural in PLURALS.values()}:
            return 404, b"{}"
        return self._create(path, body) if method == "POST" else self._list(path, query)

    def _object(self, method: str, path: str, body: Json) -> Json:
        found = self.objects.pop(path) if method == "DELETE" else self.objects[path]
        if method == "PATCH":
            before = json.dumps(found)
            _merge(found, body)
            if json.dumps(found) != before:
                _raise_version(found)
            self.on_patch(found)
        return found

    def _create(self, path: str, body: Json) -> tuple[int, bytes]:
        if f"{path}/{body['metadata']['name']}" in self.objects:
            return 409, b"{}"
        self.add(body)
        return 201, json.dumps(body).encode()

    def _list(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        label = query.get("labelSelector", "").partition("=")
        items = [one for place, one in self.objects.items() if _listed(place, path, one, label)]
        uid = query.get("fieldSelector", "").partition("involvedObject.uid=")[2]
        items = [one for one in items if not uid or one["involvedObject"]["uid"] == uid]
        return 200, json.dumps({"items": items}).encode()


def _raise_version(thing: Json) -> None:
    metadata = thing["metadata"]
    metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)


def _merge(thing: Json, patch: Json) -> None:
    """As RFC 7396."""
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(thing.setdefault(key, {}), value)
        elif value is None:
            thing.pop(key, None)
        else:
            thing[key] = value


def _listed(place: str, path: str, item: Json, label: tuple[str, str, str]) -> bool:
    head, _, plural = path.rpartition("/")
    inside = place.rpartition("/")[0] == path or (place.startswith(head) and f"/{plural}/" in place)
    value = item["metadata"].get("labels", {}).get(label[0])
    return inside and (not label[0] or value == label[2] or (not label[1] and value is not None))


@contextmanager
def live_api(directory: Path) -> Iterator[LiveApi]:
    """The server, while it runs."""
    api = LiveApi(directory / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"] or 0))
            body = json.loads(data) if data else {}
            api.authorizations.append(self.headers["Authorization"])
            status, answer = api.answer(self.command, self.path, body, self.headers["Podferry-Token"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_GET(self) -> None:
            self.respond()

        def do_POST(self) -> None:
            self.respond()

        def do_DELETE(self) -> None:
            self.respond()

        def do_PATCH(self) -> None:
            self.respond()

        def log_message(self, *_: object) -> None:
            """No log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    cluster = {"name": "c", "cluster": {"server": api.url}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}
    kind = {"current-context": "x", "apiVersion": "v1", "kind": "Config"}
    api.kubeconfig.write_text(yaml.safe_dump({**content, **kind}))
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
