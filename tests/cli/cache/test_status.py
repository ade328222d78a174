"""`podferry cache status` against an API server on loopback, which passes requests on to a holder's words."""

import json

import pytest
import yaml

from podferry.contract.cache_api import HolderStatus
from podferry.contract.errors import Problem
from podferry.contract.status import DatasetStatus
from tests.cli.cache.conftest import say
from tests.support.live_api import live_api

LABELS = {"podferry.io/cache": "digits"}
METADATA = {"name": "podferry-cache-digits", "namespace": "team", "labels": LABELS}
FULL = HolderStatus("n1", (DatasetStatus("s3://b/c", "/x", bytes=2048, bytes_done=2048),), ("s3://b/c",))
BROKEN = HolderStatus("n2", (DatasetStatus("s3://b/c", "/x"),), (), (Problem("the bucket is missing"),))


@pytest.fixture
def kubeconfig(tmp_path):
    """Of a cluster with a cache of three holders: one is full, one broken, and one not scheduled."""
    with live_api(tmp_path) as api:
        annotations = {"podferry.io/source": "s3://b/c"}
        api.add({"kind": "Service", "metadata": {**METADATA, "annotations": annotations}})
        api.add({"kind": "StatefulSet", "metadata": METADATA, "spec": {"replicas": 3}})
        for name, node in {"one": "n1", "two": "n2", "three": None}.items():
            api.add({"kind": "Pod", "metadata": {**METADATA, "name": name}, "spec": {"nodeName": node}})
        say(api, "one", FULL)
        say(api, "two", BROKEN)
        yield api.kubeconfig


def test_the_columns(podferry, kubeconfig):
    said = podferry("cache", "status", "--kubeconfig", kubeconfig)
    assert said.code == 0, said.err
    titles, row = said.out.splitlines()
    assert titles.split("  ")[0].strip() == "NAME"
    for text in ("digits", "2.0 KiB", "1/3", "PartialReady"):
        assert text in row
    assert "the bucket is missing" in said.err
    assert "three does not respond" in said.err


def test_wide_has_a_line_for_each_holder(podferry, kubeconfig):
    said = podferry("cache", "status", "digits", "-n", "team", "-o", "wide", "--kubeconfig", kubeconfig)
    assert "s3://b/c" in said.out
    phases = {line.split()[1]: line.split()[-1] for line in said.out.splitlines()[3:]}
    assert phases == {"one": "Ready", "two": "Failed", "three": "Pending"}


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_json_and_yaml_have_everything(podferry, kubeconfig, output, load):
    said = podferry("cache", "status", "-o", output, "--kubeconfig", kubeconfig)
    [report] = load(said.out)
    assert (report["phase"], report["ready"], report["wanted"]) == ("PartialReady", 1, 3)
    assert (report["total_bytes"], report["cached_bytes"], report["source"]) == (2048, 2048, "s3://b/c")
    holders = [(one["pod"], one["node"], one["phase"], one["cached_bytes"]) for one in report["holders"]]
    assert holders == [("one", "n1", "Ready", 2048), ("two", "n2", "Failed", 0), ("three", "", "Pending", 0)]
    assert report["holders"][0]["status"]["complete"] == ["s3://b/c"]


def test_no_cache_is_an_error(podferry, kubeconfig):
    said = podferry("cache", "status", "other", "-n", "team", "--kubeconfig", kubeconfig)
    assert said.code == 1
    assert "there is no cache other in the namespace team. Create one with podferry cache create" in said.err


def test_no_kubeconfig_is_an_error(podferry, tmp_path):
    said = podferry("cache", "status", "--kubeconfig", tmp_path / "none")
    assert said.code == 1
    assert "there is no usable kubeconfig" in said.err
