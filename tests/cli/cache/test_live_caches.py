from podferry.cli.cache.live_caches import LiveCaches
from podferry.cli.live_cluster import LiveCluster
from tests.cli.cache.test_status import ApiServer, kubeconfig

__all__ = ["kubeconfig"]


def test_a_name_and_a_namespace_select(kubeconfig, monkeypatch):
    asked = []
    monkeypatch.setattr(ApiServer, "log_message", lambda self, *_: asked.append(self.path))
    monkeypatch.setattr(ApiServer, "log_request", lambda self, *_: asked.append(self.path))
    assert [one.name for one in LiveCaches(LiveCluster(str(kubeconfig))).reports("team", "digits")] == [
        "digits"
    ]
    assert asked[0] == "/api/v1/namespaces/team/services?labelSelector=podferry.io%2Fcache%3Ddigits"
