import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import ROLE, manifests
from podferry.cli.cache.live_objects import CLUSTER_WIDE, NAMESPACED, find_objects, remove_object
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.cache_api import CACHE_LABEL


@pytest.fixture
def cluster(api):
    return LiveCluster(str(api.kubeconfig))


def test_every_object_is_found_but_the_shared_role(api, cluster):
    wanted = manifests(CacheSpec("digits", "team", "s3://b/c", 1 << 20, "image", nodes=2))
    for document in wanted:
        api.add(document)
    found = find_objects(cluster, "team", "digits")
    own = [one for one in wanted if one["metadata"]["name"] != ROLE]
    assert {(one["kind"], one["metadata"]["name"]) for one in own} == {(one.kind, one.name) for one in found}
    assert {one["kind"] for one in own} | {"Job", "CronJob"} == {*NAMESPACED, *CLUSTER_WIDE}
    assert all(one["metadata"]["labels"][CACHE_LABEL] == "digits" for one in own)


def test_the_volumes_of_shared_data_are_found_in_the_namespaces_of_readers(api, cluster):
    for namespace in ("here", "there"):
        spec = CacheSpec("set", namespace, "s3://b/c", 1 << 20, "image", readers=("lab",), shared="/node")
        for document in manifests(spec):
            api.add(document)
    paths = {one.path for one in find_objects(cluster, "here", "set") if "persistent" in one.path}
    assert paths == {
        "/api/v1/persistentvolumes/podferry-cache.here.set",
        "/api/v1/persistentvolumes/podferry-cache.here.set.here",
        "/api/v1/persistentvolumes/podferry-cache.here.set.lab",
        "/api/v1/namespaces/here/persistentvolumeclaims/podferry-cache-set-stage",
        "/api/v1/namespaces/here/persistentvolumeclaims/podferry-cache-set",
    }


def test_an_object_that_is_gone_is_no_error(api, cluster):
    service = find_objects(cluster, "team", "digits")[0]
    assert str(service) == "service/podferry-cache-digits"
    for _ in range(2):
        remove_object(cluster, service)
    assert service.path not in api.objects
