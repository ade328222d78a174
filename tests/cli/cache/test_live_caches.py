import pytest

from podferry.cli.cache.live_caches import LiveCaches
from podferry.contract.errors import Unavailable
from tests.cli.cache.test_status import ApiServer, kubeconfig

__all__ = ["kubeconfig"]


def test_a_name_and_a_namespace_select(kubeconfig, monkeypatch):
    asked = []
    monkeypatch.setattr(ApiServer, "log_message", lambda self, *_: asked.append(self.path))
    monkeypatch.setattr(ApiServer, "log_request", lambda self, *_: asked.append(self.path))
    assert [one.name for one in LiveCaches(str(kubeconfig)).reports("team", "digits")] == ["digits"]
    assert asked[0] == "/api/v1/namespaces/team/services?labelSelector=podferry.io%2Fcache%3Ddigits"


def test_an_api_server_that_does_not_respond(kubeconfig):
    kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(Unavailable, match="the API server does not respond"):
        LiveCaches(str(kubeconfig)).reports(None, None)
