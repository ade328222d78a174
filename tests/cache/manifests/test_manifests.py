"""The objects of a cache, against golden manifests and Pod Security's restricted profile."""

import os
from pathlib import Path

import msgspec
import pytest
import yaml

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import ROLE, manifests
from podferry.contract.cache_api import NODES_ANNOTATION
from podferry.contract.spec import Access, Medium

GOLDEN = Path(__file__).parent / "golden"
SPECS = {
    "memory": CacheSpec("digits", "team-a", "s3://datasets/digits", 1 << 30, "podferry:0.1.0"),
    "shared": CacheSpec(
        "digits",
        "podferry",
        "s3://datasets/digits",
        1 << 30,
        "podferry:0.1.0",
        readers=("team-a", "lab-*"),
        shared="/var/lib/podferry",
    ),
    "claim": CacheSpec(
        "digits", "team-a", "pvc://datasets/digits", 1 << 30, "podferry:0.1.0", nodes=2, refresh=600
    ),
    "everything": CacheSpec(
        "digits",
        "podferry",
        "s3://datasets/digits#sha256=" + "0" * 64 + "&bytes=100&files=2",
        50 << 30,
        "podferry:0.1.0",
        nodes=4,
        selector={"pool": "gpu"},
        node_affinity={
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}]
            }
        },
        tolerations=({"key": "gpu", "operator": "Exists"},),
        readers=("team-*", "lab"),
        access=Access("keys", "https://s3.example.com", "eu-1"),
        medium=Medium.DISK,
        max_rate=200 << 20,
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_manifests_are_the_golden_ones(name):
    text = yaml.safe_dump_all(manifests(SPECS[name]), sort_keys=False)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PODFERRY_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", SPECS)
def test_holders_pass_restricted_pod_security(name):
    *_, workload = manifests(SPECS[name])
    spec = workload["spec"]["template"]["spec"]
    [container] = spec["containers"]
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert {key for volume in spec["volumes"] for key in volume} <= {
        "name",
        "emptyDir",
        "secret",
        "projected",
        "persistentVolumeClaim",
    }


def test_no_two_caches_have_an_object_of_the_same_name_in_the_cluster():
    named = ("c", "y-lab"), ("c-y", "lab")
    specs = [CacheSpec(name, namespace, "s3://b/c", 1 << 20, "image") for name, namespace in named]
    wide = [
        [one["metadata"] for one in manifests(spec) if "namespace" not in one["metadata"]] for spec in specs
    ]
    found = [{one["name"] for one in of_one} - {ROLE} for of_one in wide]
    assert all(found)
    assert not found[0] & found[1]


def test_kubernetes_replaces_nothing_in_a_source():
    *_, workload = manifests(msgspec.structs.replace(SPECS["memory"], source="s3://b/$(HOME)x"))
    assert "s3://b/$$(HOME)x" in workload["spec"]["template"]["spec"]["containers"][0]["args"]


def test_the_memory_limit_has_room_for_the_volume():
    *_, workload = manifests(SPECS["memory"])
    spec = workload["spec"]["template"]["spec"]
    limit, size = spec["containers"][0]["resources"]["limits"]["memory"], spec["volumes"][0]["emptyDir"]
    assert size == {"sizeLimit": "1024Mi", "medium": "Memory"}
    assert int(limit.removesuffix("Mi")) > 1024 + 200


def test_more_nodes_change_nothing_but_their_number():
    one, three = (manifests(msgspec.structs.replace(SPECS["memory"], nodes=nodes)) for nodes in (1, 3))
    assert one[:-1] == three[:-1]
    assert [found[-1]["spec"].pop("replicas") for found in (one, three)] == [1, 3]
    notes = [found[-1]["metadata"].pop("annotations")[NODES_ANNOTATION] for found in (one, three)]
    assert notes == ["1", "3"]
    assert one == three


@pytest.mark.parametrize("change", [{"size": 2 << 30}, {"image": "podferry:0.2.0"}])
def test_a_resize_and_an_upgrade_change_the_pods_alone(change):
    before, after = manifests(SPECS["memory"]), manifests(msgspec.structs.replace(SPECS["memory"], **change))
    assert before[:-1] == after[:-1]
    assert before[-1]["spec"].pop("template") != after[-1]["spec"].pop("template")
    assert before[-1] == after[-1]
