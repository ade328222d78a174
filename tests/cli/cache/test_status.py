"""`podferry cache status` against an API server on loopback, which passes requests on to a holder's words."""

import json
import threading

import msgspec
import pytest
import yaml

from podferry.cli import cluster_transport
from podferry.contract.cache_api import STATUS_PATH, HolderStatus, Refusal
from podferry.contract.errors import Problem
from podferry.contract.status import DatasetStatus
from tests.cli.cache.conftest import say
from tests.support.live_api import LiveApi, live_api
from tests.support.patience import PATIENCE

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


def test_a_cache_without_its_account_hides_no_other(podferry, api):
    api.missing.add("/api/v1/namespaces/team/serviceaccounts/podferry-cache-digits/token")
    said = podferry("cache", "status", "-o", "wide", "--kubeconfig", api.kubeconfig)
    assert said.code == 0, said.err
    phases = {line.split()[-2]: line.split("  ") for line in said.out.splitlines() if "s3://b/c" in line}
    assert [name for name, row in phases.items() if "Failed" in " ".join(row)] == ["team"]
    assert (
        "the ServiceAccount podferry-cache-digits of the holders is missing. Create the cache again"
        in said.err
    )


def test_who_may_not_ask_a_holder_learns_that(podferry, api):
    forbidden = {"kind": "Status", "message": "pods is forbidden", "reason": "Forbidden"}
    api.holders[f"GET podferry-0 {STATUS_PATH}"] = lambda _: (403, json.dumps(forbidden).encode())
    said = podferry("cache", "status", "-n", "podferry", "--kubeconfig", api.kubeconfig)
    assert (said.code, said.out) == (1, "")
    assert "Use an account that may get pods/proxy in the namespace podferry" in said.err


@pytest.mark.parametrize("status", [401, 403, 503])
def test_a_holder_that_refuses_says_why(podferry, api, status):
    refusal = Refusal((Problem("the holder cannot verify tokens"),))
    api.holders[f"GET podferry-0 {STATUS_PATH}"] = lambda _: (status, msgspec.json.encode(refusal))
    said = podferry("cache", "status", "-n", "podferry", "--kubeconfig", api.kubeconfig)
    assert said.code == 0
    assert "podferry-0 does not respond: the holder cannot verify tokens" in said.err
    assert "Use an account" not in said.err


def test_holders_are_asked_at_the_same_time(podferry, kubeconfig, monkeypatch):
    both = threading.Barrier(2, timeout=PATIENCE)
    answer = LiveApi.answer

    def together(self, method, url, *rest):
        if "/pods/one:" in url or "/pods/two:" in url:
            both.wait()
        return answer(self, method, url, *rest)

    monkeypatch.setattr(LiveApi, "answer", together)
    said = podferry("cache", "status", "--kubeconfig", kubeconfig)
    assert (said.code, "1/3" in said.out) == (0, True)


def test_a_holder_that_hangs_is_asked_once(podferry, api, monkeypatch):
    monkeypatch.setattr(cluster_transport, "READ_SECONDS", 0.5)
    over = threading.Event()

    def hang(_):
        over.wait(PATIENCE)
        return 200, b"{}"

    api.holders[f"GET podferry-0 {STATUS_PATH}"] = hang
    said = podferry("cache", "status", "-n", "podferry", "--kubeconfig", api.kubeconfig)
    over.set()
    assert said.code == 0
    assert "podferry-0 does not respond" in said.err
    assert len([one for one in api.asked if STATUS_PATH in one]) == 1


def test_nobody_writes_lines_into_the_table(podferry, api):
    path = "/api/v1/namespaces/team/services/podferry-cache-digits"
    api.objects[path]["metadata"]["annotations"]["podferry.io/source"] = "s3://b/\x1b[31m\nfaked  1/1  Ready"
    said = podferry("cache", "status", "-o", "wide", "--kubeconfig", api.kubeconfig)
    assert "'s3://b/\\x1b[31m\\nfaked  1/1  Ready'" in said.out


def test_no_kubeconfig_is_an_error(podferry, tmp_path):
    said = podferry("cache", "status", "--kubeconfig", tmp_path / "none")
    assert said.code == 1
    assert "there is no usable kubeconfig" in said.err


def add_event(api, uid, reason, message):
    metadata = {"name": f"of-{uid}", "namespace": "team"}
    event = {"metadata": metadata, "involvedObject": {"uid": uid}, "reason": reason, "message": message}
    api.add({"kind": "Event", **event, "count": 2, "lastTimestamp": "2026-01-01T00:00:00Z"})


@pytest.fixture
def waiting(tmp_path):
    """A cluster with a cache of two holders, of which one waits for a volume, and one may not be created."""
    with live_api(tmp_path) as api:
        api.add({"kind": "Service", "metadata": METADATA})
        api.add({"kind": "StatefulSet", "metadata": {**METADATA, "uid": "set"}, "spec": {"replicas": 2}})
        state = {"waiting": {"reason": "ContainerCreating"}}
        pod = {"metadata": {**METADATA, "name": "one", "uid": "pod"}, "spec": {"nodeName": "n1"}}
        api.add({"kind": "Pod", **pod, "status": {"containerStatuses": [{"state": state}]}})
        add_event(api, "pod", "FailedMount", "/x is not a directory")
        add_event(api, "set", "FailedCreate", "exceeded quota: q")
        yield api


def test_what_a_pod_waits_for_is_named(podferry, waiting):
    said = podferry("cache", "status", "--kubeconfig", waiting.kubeconfig)
    assert "one does not respond: FailedMount: /x is not a directory" in said.err
    assert "digits: FailedCreate: exceeded quota: q" in said.err
    assert "Failed" in said.out


def test_a_cache_whose_pods_may_not_be_created_has_failed(podferry, waiting):
    del waiting.objects["/api/v1/namespaces/team/pods/one"]
    said = podferry("cache", "status", "--kubeconfig", waiting.kubeconfig)
    assert "digits: FailedCreate: exceeded quota: q" in said.err
    assert "Failed" in said.out


def test_who_may_not_list_events_sees_the_rest(podferry, waiting):
    waiting.missing.add("/api/v1/namespaces/team/events")
    said = podferry("cache", "status", "--kubeconfig", waiting.kubeconfig)
    assert said.code == 0
    assert "one does not respond: ContainerCreating" in said.err
