"""The `kubernetes` client against lists of an API server on loopback; a real one is in the e2e tests."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.cli.live_cluster import LiveCluster
from podferry.cli.pods.cluster_objects import read_objects
from podferry.contract.errors import AccessDenied


def owned(name: str, kind: str | None, namespace: str = "team") -> dict[str, Any]:
    owners = [{"kind": kind, "name": "owner"}] if kind else None
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": owners}, "unknown": 1}


LISTS: dict[str, list[dict[str, Any]]] = {
    "/api/v1/namespaces": [{"metadata": {"name": "team", "labels": {"a": "b"}}}],
    "/apis/batch/v1/jobs": [owned("digits", None), owned("nightly-1", "CronJob")],
    "/apis/batch/v1/cronjobs": [owned("nightly", None)],
    "/apis/apps/v1/deployments": [owned("web", None), owned("web", None, "other")],
    "/apis/apps/v1/statefulsets": [],
    "/api/v1/pods": [owned("bare", None), owned("digits-x", "Job"), owned("step", "Workflow")],
}


NAMESPACED = re.compile(r"(.*)/namespaces/other(/.*)?")


def answer(path: str) -> Any:
    """A list of all namespaces, or one of the namespace `other`, or that namespace."""
    match = NAMESPACED.fullmatch(path)
    if match and not match[2]:
        return {"metadata": {"name": "other", "labels": {}}}
    items = LISTS[f"{match[1]}{match[2]}" if match else path]
    return {"items": [one for one in items if not match or one["metadata"]["namespace"] == "other"]}


@pytest.fixture
def asked() -> list[str]:
    """The paths that were requested."""
    return []


@pytest.fixture
def kubeconfig(tmp_path: Path, asked: list[str]) -> Iterator[Path]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, _ = self.path.partition("?")
            asked.append(path)
            body = json.dumps(answer(path)).encode()
            self.send_response(403 if (tmp_path / "denied").exists() else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    entry = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": entry}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    yield path
    server.shutdown()
    server.server_close()


def test_templates_and_pods_that_no_template_shows(kubeconfig: Path) -> None:
    found = read_objects(LiveCluster(str(kubeconfig)))
    assert [(one["kind"], one["metadata"]["name"]) for one in found] == [
        ("Namespace", "team"),
        ("Job", "digits"),
        ("CronJob", "nightly"),
        ("Deployment", "web"),
        ("Deployment", "web"),
        ("Pod", "bare"),
        ("Pod", "step"),
    ]
    assert found[1]["unknown"] == 1


def test_one_namespace(kubeconfig: Path, asked: list[str]) -> None:
    """Only that one is asked for: a team's account may read no other."""
    found = read_objects(LiveCluster(str(kubeconfig), "x"), "other")
    assert [one["kind"] for one in found] == ["Namespace", "Deployment"]
    assert len(asked) == 6
    assert all(NAMESPACED.fullmatch(path) for path in asked)


def test_a_denied_list(kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / "denied").touch()
    with pytest.raises(AccessDenied, match=r"cannot get the Namespace other.*may get the Namespace other"):
        read_objects(LiveCluster(str(kubeconfig)), "other")
    with pytest.raises(AccessDenied, match=r"cannot list Namespaces.*may list Namespaces"):
        read_objects(LiveCluster(str(kubeconfig)))
