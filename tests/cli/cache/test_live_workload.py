import pytest

from podferry.cli.cache.live_workload import CLEARED_NODES, LiveWorkload
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import NotFound

PATH = "/apis/apps/v1/namespaces/team/statefulsets/podferry-cache-digits"


def test_stop_and_start(api):
    cluster = LiveCluster(str(api.kubeconfig))
    api.objects[PATH]["spec"]["replicas"] = 3
    LiveWorkload(cluster, "team", "digits").start()
    assert not any(one.startswith("PATCH") for one in api.asked)
    for _ in range(2):
        LiveWorkload(cluster, "team", "digits").stop()
        assert api.objects[PATH]["spec"]["replicas"] == 0
    LiveWorkload(cluster, "team", "digits").start()
    assert api.objects[PATH]["spec"]["replicas"] == 3
    assert CLEARED_NODES not in api.objects[PATH]["metadata"]["annotations"]


def test_a_pod_that_is_gone_is_no_error(api):
    workload = LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits")
    for _ in range(2):
        workload.replace("team-0")
    assert "/api/v1/namespaces/team/pods/team-0" not in api.objects


def test_a_cache_without_a_stateful_set(api):
    del api.objects[PATH]
    with pytest.raises(NotFound, match="Create it again"):
        LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits")
