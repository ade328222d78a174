from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cache.manifests.merge_patch import merge_patch
from podferry.contract.cache_api import CLEARED_NODES

TOLERATION = {"key": "gpu", "operator": "Exists"}


def workload(**more):
    [found] = [one for one in manifests(spec(**more)) if one["kind"] == "StatefulSet"]
    return found


def spec(**more):
    return CacheSpec("digits", "team", "s3://b/c", 1 << 20, "image", **more)


def test_what_a_cache_no_longer_has_is_removed():
    patch = merge_patch(workload())
    pod = patch["spec"]["template"]["spec"]
    assert [pod["nodeSelector"], pod["tolerations"], pod["affinity"]["nodeAffinity"]] == [None, None, None]
    assert patch["metadata"]["annotations"][CLEARED_NODES] is None


def test_what_it_has_is_kept():
    given = workload(selector={"pool": "gpu"}, tolerations=(TOLERATION,), node_affinity={"x": 1})
    patch = merge_patch(given)["spec"]["template"]["spec"]
    assert patch == given["spec"]["template"]["spec"]


def test_every_key_that_a_manifest_may_leave_out_is_known():
    """A key that only some caches have would stay otherwise when a cache no longer has it."""
    full = workload(selector={"a": "b"}, tolerations=(TOLERATION,), node_affinity={"x": 1})
    for given in (full, workload(shared="/var/lib/podferry")):
        bare = merge_patch(workload())["spec"]
        assert given["spec"].keys() <= bare.keys()
        pod, bare_pod = given["spec"]["template"]["spec"], bare["template"]["spec"]
        assert pod.keys() <= bare_pod.keys()
        assert pod["affinity"].keys() <= bare_pod["affinity"].keys()


def test_other_objects_are_applied_as_they_are():
    others = [one for one in manifests(spec()) if one["kind"] != "StatefulSet"]
    assert [merge_patch(one) for one in others] == others
