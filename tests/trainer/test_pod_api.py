"""What a pod reads about pods, and which right is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, NotFound, Unavailable
from podferry.trainer.pod_api import PodApi, pod_api
from tests.support.pod_api_server import StandInApiServer

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_pods_and_logs_of_its_namespace(api_server: StandInApiServer) -> None:
    api_server.has("pods/a", {"kind": "Pod"})
    api_server.has("pods", {"items": [{"kind": "Pod"}]})
    api_server.answers["/api/v1/namespaces/team/pods/a/log"] = (200, b"last\n")
    api = api_server.api
    assert api.pod("a") == {"kind": "Pod"}
    assert api.pods("pipeline/runid=r") == [{"kind": "Pod"}]
    assert api.log("a", "main", 7) == "last\n"
    paths, tokens = zip(*api_server.asked, strict=True)
    assert set(tokens) == {"Bearer t0ken"}
    assert paths[1].endswith("?labelSelector=pipeline%2Frunid%3Dr")
    assert paths[2].endswith("?container=main&tailLines=7")


def test_a_missing_right_is_named(api_server: StandInApiServer) -> None:
    for path in ("pods", "pods/a/log"):
        api_server.forbids(path)
    with pytest.raises(AccessDenied, match=r"may not list pods .*403.*Allow .* in the namespace team"):
        api_server.api.pods("x=y")
    with pytest.raises(AccessDenied, match="may not get pods/log"):
        api_server.api.log("a", "main", 1)
    with pytest.raises(NotFound):
        api_server.api.pod("absent")
    with pytest.raises(Unavailable, match="does not respond to list pods"):
        PodApi("http://127.0.0.1:1", api_server.api.account).pods("x=y")


def test_there_is_none_outside_a_pod_or_without_a_token(tmp_path: Path) -> None:
    assert pod_api(IN_POD, tmp_path) is None
    (tmp_path / "token").write_text("t")
    assert pod_api({}, tmp_path) is None
    assert pod_api(IN_POD, tmp_path) == PodApi("https://10.0.0.1:443", tmp_path)
