import json

import pytest

from podferry.cli import live_cluster
from podferry.cli.cluster_transport import FailedRequest, own_cluster_transport, token_transport
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import AccessDenied, InvalidSpec, Unavailable
from tests.support.live_api import live_api


@pytest.fixture
def api(tmp_path):
    with live_api(tmp_path) as api:
        api.add({"kind": "Service", "metadata": {"name": "s", "namespace": "team"}})
        yield api


@pytest.fixture
def send(api, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    return token_transport(api.url, tmp_path / "token")


def test_a_pods_account_reads_and_patches(api, send):
    path = "/api/v1/namespaces/team/services/s"
    assert json.loads(send("GET", path, {}, {}, None))["metadata"]["name"] == "s"
    send("PATCH", path, {}, {"Content-Type": "application/merge-patch+json"}, {"spec": {"x": 1}})
    assert api.objects[path]["spec"] == {"x": 1}
    assert json.loads(send("GET", "/api/v1/services", {"labelSelector": "a/b=c"}, {}, None))["items"] == []
    assert api.asked[-1] == "GET /api/v1/services?labelSelector=a%2Fb%3Dc"
    assert api.authorizations == ["Bearer secret"] * 3


def test_a_token_that_was_renewed_counts(api, send, tmp_path):
    (tmp_path / "token").write_text("newer")
    send("GET", "/api/v1/services", {}, {}, None)
    assert api.authorizations == ["Bearer newer"]


def test_an_answer_that_is_no_success(api, send):
    api.failure = 403
    with pytest.raises(FailedRequest, match="403 Forbidden") as raised:
        send("GET", "/api/v1/services", {}, {}, None)
    assert raised.value.status == 403


def test_in_a_pod_its_account_is_used(api, send, monkeypatch):
    monkeypatch.setattr(live_cluster, "own_cluster_transport", lambda: send)
    api.failure = 403
    with pytest.raises(AccessDenied, match="Use an account that may list Services"):
        LiveCluster().get("/api/v1/services", "list Services")
    api.failure = None
    api.objects.clear()
    assert LiveCluster(str(api.kubeconfig)).get("/api/v1/services", "list Services") == {"items": []}
    assert api.authorizations == ["Bearer secret", None]


def test_nobody_listens(api, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("secret")
    silent = token_transport("http://127.0.0.1:1", tmp_path / "token")
    monkeypatch.setattr(live_cluster, "own_cluster_transport", lambda: silent)
    with pytest.raises(Unavailable, match="cannot list Services"):
        LiveCluster().get("/api/v1/services", "list Services")


def test_without_an_account_or_with_a_kubeconfig_it_is_not_this_cluster(tmp_path):
    assert own_cluster_transport(tmp_path, {}) is None
    (tmp_path / "token").write_text("secret")
    assert own_cluster_transport(tmp_path, {"KUBECONFIG": "/x"}) is None
    with pytest.raises(InvalidSpec, match="Give --kubeconfig"):
        own_cluster_transport(tmp_path, {})
