import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.shared_volumes import shared_volumes, sharing_namespaces

SPEC = CacheSpec(
    "digits", "podferry", "s3://b/c", 1 << 30, "image", readers=("lab", "team-*", "lab", "x?"), shared="/node"
)


def test_namespaces_that_are_named_get_a_claim():
    assert sharing_namespaces(SPEC) == ("podferry", "lab")


def test_each_volume_is_reserved_for_its_claim():
    made = list(shared_volumes(SPEC))
    for volume, claim in zip(made[::2], made[1::2], strict=True):
        assert (volume["kind"], claim["kind"]) == ("PersistentVolume", "PersistentVolumeClaim")
        reserved, metadata = volume["spec"]["claimRef"], claim["metadata"]
        assert reserved == {"namespace": metadata["namespace"], "name": metadata["name"]}
        assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


@pytest.mark.parametrize(("number", "path"), [(0, "/node"), (1, "/node/read/podferry_digits")])
def test_readers_see_their_cache_alone_and_read_only(number, path):
    volumes = [one for one in shared_volumes(SPEC) if one["kind"] == "PersistentVolume"]
    assert volumes[number]["spec"]["hostPath"] == {"path": path, "type": "Directory"}
