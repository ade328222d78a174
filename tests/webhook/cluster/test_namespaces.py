from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.namespaces import LABEL_CACHE_SECONDS, ClusterNamespaces, UnknownNamespaces
from tests.support.memory_cluster import MemoryCluster


async def test_labels_are_cached(cluster: MemoryCluster) -> None:
    now = 0.0
    cluster.namespaces["team"] = {"a": "1"}
    namespaces = ClusterNamespaces(cluster, clock=lambda: now)
    assert (await namespaces.find("team")).labels == {"a": "1"}
    cluster.namespaces["team"] = {"a": "2"}
    assert (await namespaces.find("team")).labels == {"a": "1"}
    now = LABEL_CACHE_SECONDS
    assert (await namespaces.find("team")).labels == {"a": "2"}
    now, cluster.failure = 2 * LABEL_CACHE_SECONDS, Unavailable.of("no answer")
    assert (await namespaces.find("team")).labels == {"a": "2"}
    assert (await namespaces.find("other")).labels == {}


async def test_outside_a_cluster_nothing_is_known() -> None:
    assert (await UnknownNamespaces().find("team")).labels == {}
