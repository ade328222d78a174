from podferry.cli.cache.live_caches import LiveCaches, no_cache
from podferry.cli.live_cluster import LiveCluster


def test_a_name_and_a_namespace_select(api):
    [report] = LiveCaches(LiveCluster(str(api.kubeconfig))).reports("team", "digits")
    assert (report.name, report.namespace, report.readers) == ("digits", "team", ())
    assert api.asked[0] == "GET /api/v1/namespaces/team/services?labelSelector=podferry.io%2Fcache%3Ddigits"


def test_what_is_not_there_is_named():
    assert "there is no cache digits in the namespace team" in str(no_cache("team", "digits"))
    assert "there is no cache in the cluster" in str(no_cache(None, None))
