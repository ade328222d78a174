"""`podferry cache status` against an API server on loopback, which passes requests on to a holder's words."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import msgspec
import pytest
import yaml

from podferry.contract.cache_api import TOKEN_HEADER, HolderStatus
from podferry.contract.errors import Problem
from podferry.contract.status import DatasetStatus

LABELS = {"podferry.io/cache": "digits"}
SERVICE = {
    "metadata": {
        "name": "podferry-cache-digits",
        "namespace": "team",
        "labels": LABELS,
        "annotations": {"podferry.io/source": "s3://b/c"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
}
FULL = HolderStatus("n1", (DatasetStatus("s3://b/c", "/x", bytes=2048, bytes_done=2048),), ("s3://b/c",))
BROKEN = HolderStatus("n2", (DatasetStatus("s3://b/c", "/x"),), (), (Problem("the bucket is missing"),))


def pod(name, node):
    return {"metadata": {"name": name}, "spec": {"nodeName": node}}


class ApiServer(BaseHTTPRequestHandler):
    services: ClassVar = [SERVICE]
    said: ClassVar = {"one": FULL, "two": BROKEN}

    def log_message(self, *_):
        """No log."""

    def respond(self, document, status=200):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.endswith("/services"):
            self.respond({"items": self.services})
        elif path == "/api/v1/namespaces/team/pods":
            self.respond({"items": [pod("one", "n1"), pod("two", "n2"), pod("three", None)]})
        elif path == "/apis/apps/v1/namespaces/team/statefulsets/podferry-cache-digits":
            self.respond({"spec": {"replicas": 3}})
        else:
            name = path.removeprefix("/api/v1/namespaces/team/pods/").partition(":")[0]
            assert path == f"/api/v1/namespaces/team/pods/{name}:8091/proxy/v1/status"
            if self.headers[TOKEN_HEADER] != "of-the-holders" or name not in self.said:
                self.respond({"message": "no endpoints available"}, 503)
            else:
                self.respond(msgspec.json.encode(self.said[name]))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/api/v1/namespaces/team/serviceaccounts/podferry-cache-digits/token"
        assert asked["spec"]["audiences"] == ["podferry-cache"]
        self.respond({"status": {"token": "of-the-holders"}}, 201)


@pytest.fixture
def kubeconfig(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    Thread(target=server.serve_forever, daemon=True).start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({**content, "current-context": "x", "apiVersion": "v1", "kind": "Config"}))
    yield path
    server.shutdown()
    server.server_close()


def test_the_columns(podferry, kubeconfig):
    said = podferry("cache", "status", "--kubeconfig", kubeconfig)
    assert said.code == 0, said.err
    titles, row = said.out.splitlines()
    assert titles.split("  ")[0].strip() == "NAME"
    for text in ("digits", "2.0 KiB", "1/3", "PartialReady"):
        assert text in row
    assert "the bucket is missing" in said.err
    assert "three does not respond" in said.err


def test_wide_has_a_line_for_each_holder(podferry, kubeconfig):
    said = podferry("cache", "status", "digits", "-n", "team", "-o", "wide", "--kubeconfig", kubeconfig)
    assert "s3://b/c" in said.out
    phases = {line.split()[1]: line.split()[-1] for line in said.out.splitlines()[3:]}
    assert phases == {"one": "Ready", "two": "Failed", "three": "Pending"}


def test_json_has_everything(podferry, kubeconfig):
    said = podferry("cache", "status", "-o", "json", "--kubeconfig", kubeconfig)
    [report] = json.loads(said.out)
    assert [one["pod"] for one in report["holders"]] == ["one", "two", "three"]


def test_no_cache_is_an_error(podferry, kubeconfig, monkeypatch):
    monkeypatch.setattr(ApiServer, "services", [])
    said = podferry("cache", "status", "other", "-n", "team", "--kubeconfig", kubeconfig)
    assert said.code == 1
    assert "there is no cache other in the namespace team. Create one with podferry cache create" in said.err


def test_no_kubeconfig_is_an_error(podferry, tmp_path):
    said = podferry("cache", "status", "--kubeconfig", tmp_path / "none")
    assert said.code == 1
    assert "there is no usable kubeconfig" in said.err
