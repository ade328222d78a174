import json

import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cli.cache.applied_objects import apply_objects
from podferry.cli.live_cluster import LiveCluster
from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Refused
from tests.support.live_api import LiveApi, live_api

WORKLOAD = "/apis/apps/v1/namespaces/lab/statefulsets/podferry-cache-digits"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/podferry-cache"


@pytest.fixture
def empty(tmp_path):
    with live_api(tmp_path) as api:
        yield api


def applied(api, **more):
    spec = CacheSpec("digits", "lab", "s3://b/c", 1 << 20, "image", **more)
    return list(apply_objects(LiveCluster(str(api.kubeconfig)), manifests(spec)))


def refused(monkeypatch, method, status, message, *parts):
    """Have the API server refuse requests with one of these parts in their path."""
    answer = LiveApi.answer

    def refuse(self, asked, url, *rest):
        if asked == method and any(part in url for part in parts):
            return status, json.dumps({"kind": "Status", "message": message}).encode()
        return answer(self, asked, url, *rest)

    monkeypatch.setattr(LiveApi, "answer", refuse)


def test_it_creates_each_object_and_then_changes_nothing(empty):
    first = applied(empty)
    assert {one.outcome for one in first} == {"created"}
    assert str(first[-1]) == "statefulset/podferry-cache-digits created"
    before = json.dumps(empty.objects)
    assert {one.outcome for one in applied(empty)} == {"unchanged"}
    assert json.dumps(empty.objects) == before


def test_other_parameters_change_what_differs(empty):
    applied(empty, nodes=2, selector={"pool": "gpu"})
    done = {one.kind: one.outcome for one in applied(empty, nodes=3)}
    assert done.pop("StatefulSet") == "changed"
    assert set(done.values()) == {"unchanged"}
    spec = empty.objects[WORKLOAD]["spec"]
    assert spec["replicas"] == 3
    assert "nodeSelector" not in spec["template"]["spec"]


def test_volumes_of_readers_are_created_in_their_namespaces(empty):
    applied(empty, shared="/var/lib/podferry", readers=("team",))
    claims = [path for path in empty.objects if "/persistentvolumeclaims/" in path]
    assert [path.split("/")[4] for path in claims] == ["lab", "lab", "team"]


def test_every_right_that_is_missing_is_named_and_no_holder_starts(empty, monkeypatch):
    refused(monkeypatch, "POST", 403, "not currently held", "/roles", "/clusterrolebindings")
    with pytest.raises(AccessDenied) as raised:
        applied(empty)
    assert [one.remedy for one in raised.value.problems] == [
        "Use an account that may create ClusterRoleBindings",
        "Use an account that may create Roles in the namespace lab",
    ]
    assert {one.measured for one in raised.value.problems} == {"not currently held"}
    assert WORKLOAD not in empty.objects


def test_a_namespace_that_is_missing(empty, monkeypatch):
    refused(monkeypatch, "POST", 404, 'namespaces "lab" not found', "/serviceaccounts")
    with pytest.raises(NotFound, match="kubectl create namespace lab"):
        applied(empty)


def test_a_missing_namespace_of_readers_keeps_no_holder_from_starting(empty, monkeypatch):
    refused(monkeypatch, "POST", 404, 'namespaces "gone" not found', "/gone/persistentvolumeclaims")
    with pytest.raises(NotFound, match="kubectl create namespace gone"):
        applied(empty, shared="/var/lib/podferry", readers=("gone", "team"))
    assert WORKLOAD in empty.objects
    assert "/api/v1/namespaces/team/persistentvolumeclaims/podferry-cache-digits" in empty.objects


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "unable to create new content in namespace gone because it is being terminated",
            "Leave the namespace",
        ),
        ("exceeded quota: no-claims", "Raise the quota"),
        ("not currently held", "Use an account"),
    ],
)
def test_a_namespace_of_readers_that_takes_no_claim_stops_no_one_else(empty, monkeypatch, message, remedy):
    refused(monkeypatch, "POST", 403, message, "/gone/persistentvolumeclaims")
    with pytest.raises(AccessDenied, match=remedy):
        applied(empty, shared="/var/lib/podferry", readers=("gone", "team"))
    assert WORKLOAD in empty.objects
    assert "/api/v1/namespaces/team/persistentvolumeclaims/podferry-cache-digits" in empty.objects


def test_another_size_changes_no_claim(empty):
    applied(empty, shared="/var/lib/podferry")
    spec = CacheSpec("digits", "lab", "s3://b/c", 1 << 30, "image", shared="/var/lib/podferry")
    done = list(apply_objects(LiveCluster(str(empty.kubeconfig)), manifests(spec)))
    outcomes = {(one.kind, one.outcome) for one in done}
    assert {("PersistentVolumeClaim", "unchanged"), ("StatefulSet", "changed")} <= outcomes
    assert ("PersistentVolume", "changed") in outcomes


def test_a_volume_whose_claim_has_gone_is_free_for_a_new_one(empty):
    applied(empty, shared="/var/lib/podferry", readers=("team",))
    volumes = [one for path, one in empty.objects.items() if "/persistentvolumes/" in path]
    for volume in volumes:
        volume["spec"]["claimRef"] |= {"uid": "1", "resourceVersion": "2"}
    volumes[-1]["status"] = {"phase": "Released"}
    applied(empty, shared="/var/lib/podferry", readers=("team",))
    claims = [one["spec"]["claimRef"] for one in volumes]
    assert claims[-1] == {"namespace": "team", "name": "podferry-cache-digits"}
    assert all("uid" in one for one in claims[:-1])


def test_a_field_that_cannot_change_is_named(empty, monkeypatch):
    applied(empty)
    refused(monkeypatch, "PATCH", 422, "spec: Forbidden: it cannot change", "/statefulsets")
    with pytest.raises(InvalidSpec, match="spec: Forbidden: it cannot change"):
        applied(empty)


def test_another_one_that_creates_it_at_this_moment_is_no_error(empty, monkeypatch):
    answer = LiveApi.answer

    def late(self, method, url, body, token):
        if method == "POST" and url.endswith("/clusterroles"):
            self.add(body)
        return answer(self, method, url, body, token)

    monkeypatch.setattr(LiveApi, "answer", late)
    assert {one.kind: one.outcome for one in applied(empty)}["ClusterRole"] == "changed"
    assert ROLE in empty.objects


def test_what_is_being_deleted_is_not_taken_for_created(empty):
    applied(empty, shared="/var/lib/podferry", readers=("team",))
    [path] = [path for path in empty.objects if "/team/persistentvolumeclaims/" in path]
    empty.objects[path]["metadata"]["deletionTimestamp"] = "2026-11-28T12:00:00Z"
    with pytest.raises(Refused, match="is being deleted, and something still uses it") as raised:
        applied(empty, shared="/var/lib/podferry", readers=("team",))
    assert "namespace team" in str(raised.value)
