"""SampleSets, as in Paddle Operator's guide and its types."""

import pytest

from podferry.cache.manifests.cache_file import read_cache_file
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Medium

GUIDE = {
    "apiVersion": "batch.paddlepaddle.org/v1alpha1",
    "kind": "SampleSet",
    "metadata": {"name": "imagenet", "namespace": "paddle-system"},
    "spec": {
        "partitions": 1,
        "source": {"uri": "bos://paddleflow-public.hkg.bcebos.com/imagenet/demo"},
        "secretRef": {"name": "imagenet"},
    },
}


def values(**spec):
    found = read_cache_file({**GUIDE, "spec": {**GUIDE["spec"], **spec}}, "set.yaml")
    return {**found.values, "source": str(found.values["source"]), "notes": [one.what for one in found.notes]}


def problems(**spec):
    with pytest.raises(InvalidSpec) as raised:
        values(**spec)
    return [str(one) for one in raised.value.problems]


def test_the_guide_s_set():
    assert values() == {
        "name": "imagenet",
        "namespace": "paddle-system",
        "nodes": 1,
        "source": "bos://paddleflow-public.hkg.bcebos.com/imagenet/demo",
        "secret": "imagenet",
        "notes": [],
    }


@pytest.mark.parametrize(
    ("uri", "source", "more"),
    [
        ("s3://b.s3.us-east-1.amazonaws.com/c/d", "s3://b/c/d", {"region": "us-east-1"}),
        ("s3://b.s3-eu-west-1.amazonaws.com", "s3://b/", {"region": "eu-west-1"}),
        ("s3://b/c", "s3://b/c", {}),
        (
            "oss://b.oss-cn-beijing.aliyuncs.com/c",
            "oss://b/c",
            {"endpoint": "https://oss-cn-beijing.aliyuncs.com"},
        ),
        ("hdfs://nn:8020/c", "hdfs://nn:8020/c", {}),
    ],
)
def test_uris_with_the_bucket_s_host(uri, source, more):
    found = values(source={"uri": uri})
    assert found["source"] == source
    assert {name: found[name] for name in ("region", "endpoint") if name in found} == more


def test_levels_become_a_medium_and_a_size():
    levels = [{"mediumType": "SSD", "path": "/a", "cacheSize": 100}, {"mediumType": "HDD", "cacheSize": 28}]
    found = values(cache={"levels": levels})
    assert (found["medium"], found["size"]) == (Medium.DISK, 128 << 20)
    assert found["notes"] == ["spec.cache.levels.path is ignored"]
    found = values(cache={"levels": [{"mediumType": "MEM"}]})
    assert found["medium"] is Medium.MEMORY
    assert "size" not in found


def test_nodes():
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}]}
    of_pods = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    assert values(nodeAffinity={"required": terms})["node_affinity"] == of_pods
    found = values(nodeAffinity=of_pods, tolerations=[{"operator": "Exists"}])
    assert found["node_affinity"] == of_pods
    assert found["tolerations"] == ({"operator": "Exists"},)


def test_what_has_no_meaning_here_is_named():
    assert values(noSync=True, csi={"driver": "juicefs"})["notes"] == [
        "spec.noSync is ignored",
        "spec.csi is ignored",
    ]


def test_the_secret_of_the_source_comes_first():
    source = {**GUIDE["spec"]["source"], "secretRef": {"name": "bos", "namespace": "paddle-system"}}
    found = values(source=source)
    assert (found["secret"], found["notes"]) == ("bos", ["spec.secretRef is ignored"])


def test_everything_that_is_wrong_is_said_at_once():
    levels = [{"mediumType": "MEM"}, {"mediumType": "SSD"}]
    texts = problems(
        partitions=0,
        source={},
        cache={"levels": levels},
        secretRef={"name": "bos", "namespace": "other"},
        tolerations="all",
        sync=1,
    )
    assert [text.partition(" (")[0] for text in texts] == [
        "set.yaml: spec.partitions: not a number from 1",
        "set.yaml: spec.cache.levels: levels in memory and on disk",
        "set.yaml: spec.tolerations: not a list of mappings",
        "set.yaml: spec.sync: unknown key. Did you mean 'noSync'?",
        "set.yaml: the Secret is not in the namespace of the holders",
        "set.yaml: spec.source.uri is missing. Write where the data is, such as bos://BUCKET.REGION.bcebos.com/PATH.",
    ]


@pytest.mark.parametrize(
    "levels", [[], [1], "MEM", [{"mediumType": "RAM"}], [{}], [{"mediumType": "MEM", "cacheSize": 0}]]
)
def test_levels_that_say_nothing(levels):
    assert [text for text in problems(cache={"levels": levels}) if "spec.cache.levels" in text]


@pytest.mark.parametrize("reference", ["imagenet", {}, {"name": "UPPER"}])
def test_a_reference_to_a_secret_that_is_none(reference):
    assert "spec.secretRef" in problems(secretRef=reference)[0]


def test_a_source_that_is_no_uri():
    assert "set.yaml: spec.source.uri" in problems(source={"uri": "imagenet"})[0]
