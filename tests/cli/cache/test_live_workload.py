import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cli.cache.live_workload import LiveWorkload
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.cache_api import CLEARED_NODES, NODES_ANNOTATION
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


def test_holders_that_were_scaled_away_start_again(api):
    """`kubectl scale --replicas=0` notes no number: it is the one that `create` was asked for."""
    for document in manifests(CacheSpec("digits", "team", "s3://b/c", 1 << 20, "image", nodes=3)):
        api.add(document)
    api.objects[PATH]["spec"]["replicas"] = 0
    assert LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits").start() == 3
    assert api.objects[PATH]["spec"]["replicas"] == 3
    assert LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits").start() == 0


def test_of_a_cache_that_an_earlier_podferry_created_one_holder_starts(api):
    del api.objects[PATH]["metadata"]["annotations"]
    api.objects[PATH]["spec"]["replicas"] = 0
    assert LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits").start() == 1


@pytest.mark.parametrize("noted", ["", "many", "0", "-2", "1.5"])
def test_a_note_that_is_no_number_does_not_count(api, noted):
    api.objects[PATH]["metadata"]["annotations"] = {CLEARED_NODES: noted, NODES_ANNOTATION: "2"}
    api.objects[PATH]["spec"]["replicas"] = 0
    assert LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits").start() == 2


def test_a_pod_that_is_gone_is_no_error(api):
    workload = LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits")
    for _ in range(2):
        workload.replace("team-0")
    assert "/api/v1/namespaces/team/pods/team-0" not in api.objects


def test_a_cache_without_a_stateful_set(api):
    del api.objects[PATH]
    with pytest.raises(NotFound, match="Create it again"):
        LiveWorkload(LiveCluster(str(api.kubeconfig)), "team", "digits")
