import pytest

from podferry.cache.manifests.cache_file import SPEC, read_cache_file
from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Access, Medium

DOCUMENT = {"apiVersion": "podferry.io/v1alpha1", "kind": "Cache"}
EVERYTHING = {
    "source": "s3://b/c",
    "size": "14Gi",
    "nodes": 2,
    "selector": {"pool": "gpu"},
    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
    "tolerations": [{"operator": "Exists"}],
    "readers": ["team-*"],
    "medium": "disk",
    "shared": "/var/lib/podferry",
    "maxRate": "200Mi",
    "refresh": "10m",
    "image": "podferry:1",
    "secret": "keys",
    "endpoint": "https://s3.example.com",
    "region": "eu-1",
}


def test_every_key_of_a_cache():
    metadata = {"name": "digits", "namespace": "team", "labels": {"a": "b"}}
    found = read_cache_file({**DOCUMENT, "metadata": metadata, "spec": EVERYTHING}, "cache.yaml")
    assert found.notes == ()
    assert (found.values["source"], found.values["size"]) == (parse_reference("s3://b/c"), 14 << 30)
    assert (found.values["medium"], found.values["readers"]) == (Medium.DISK, ("team-*",))
    assert EVERYTHING.keys() == SPEC.keys()
    fields = {*CacheSpec.__struct_fields__, *Access.__struct_fields__} - {"access"}
    assert found.values.keys() == fields


def test_everything_that_is_wrong_is_said_at_once():
    spec = {"source": "s3:/b", "nodes": 0, "medium": "auto", "redaers": []}
    with pytest.raises(InvalidSpec) as raised:
        read_cache_file({**DOCUMENT, "metadata": {"name": "Digits"}, "spec": spec}, "cache.yaml")
    texts = [str(one) for one in raised.value.problems]
    assert [text.split(":")[:2] for text in texts] == [
        ["cache.yaml", " metadata.name"],
        ["cache.yaml", " spec.source"],
        ["cache.yaml", " spec.nodes"],
        ["cache.yaml", " spec.medium"],
        ["cache.yaml", " spec.redaers"],
    ]
    assert texts[-1].endswith("Did you mean 'readers'?")


@pytest.mark.parametrize(
    "document", [{"apiVersion": "v1", "kind": "Pod"}, {}, [], "text", {**DOCUMENT, "kind": ["a"]}]
)
def test_what_is_no_cache(document):
    with pytest.raises(
        InvalidSpec, match=r"Write a Cache of podferry\.io/v1alpha1 or SampleSet of batch\.paddle"
    ):
        read_cache_file(document, "cache.yaml")


def test_metadata_and_spec_that_are_no_mappings():
    with pytest.raises(InvalidSpec) as raised:
        read_cache_file({**DOCUMENT, "metadata": ["name"], "spec": "x"}, "cache.yaml")
    assert [one.what for one in raised.value.problems] == [
        "cache.yaml: metadata: not a mapping",
        "cache.yaml: spec: not a mapping",
    ]
