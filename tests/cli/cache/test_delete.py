import yaml

from podferry.cli.cache import live_caches
from podferry.contract.cache_api import STATUS_PATH, HolderStatus
from tests.cli.cache.conftest import say
from tests.support.live_api import LiveApi

REMOVED = [
    "service/podferry-cache-digits",
    "statefulset/podferry-cache-digits",
    "rolebinding/podferry-cache-digits",
    "role/podferry-cache-digits",
    "serviceaccount/podferry-cache-digits",
    "clusterrolebinding/podferry-cache-digits.podferry",
]
READ = HolderStatus("n1", (), ("s3://b/c",), readers=("team/train-0", "podferry/podferry-0"))


def names(api):
    return {path.rpartition("/")[2] for path in api.objects if "/pods/" not in path}


def test_it_removes_what_create_has_made(podferry, api):
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [f"{one} removed" for one in REMOVED]
    assert {path for path in api.objects if "/podferry/" in path} == {
        "/api/v1/namespaces/podferry/pods/podferry-0"
    }
    assert names(api) == {"podferry-cache", "podferry-cache-digits", "podferry-cache-digits.team"}
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert said.code == 1
    assert "there is no cache digits in the namespace podferry" in said.err


def test_a_cache_that_is_gone_may_be_no_error(podferry, api):
    words = ("cache", "delete", "other", "--missing-ok", "--kubeconfig", api.kubeconfig)
    said = podferry(*words)
    assert (said.code, said.out, said.err) == (0, "", "")


def test_its_jobs_go_with_it(podferry, api):
    for words in (("warmup", "digits"), ("--schedule", "@daily", "clear", "digits")):
        for document in yaml.safe_load_all(podferry("cache", "job", *words).out):
            api.add(document)
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert said.out.startswith("cronjob/podferry-job-digits-clear removed\njob/podferry-job-digits-warmup ")
    assert len(said.out.splitlines()) == len(REMOVED) + 2 * 4
    assert any(one.startswith("DELETE") and "/jobs/" in one and "Background" in one for one in api.asked)


def test_a_dry_run_changes_nothing(podferry, api):
    before = dict(api.objects)
    said = podferry("cache", "delete", "digits", "--dry-run", "--kubeconfig", api.kubeconfig)
    assert said.out.splitlines() == [f"{one} would be removed" for one in REMOVED]
    assert api.objects == before


def test_it_is_refused_while_pods_read(podferry, api):
    say(api, "podferry-0", READ)
    before = dict(api.objects)
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert (said.code, said.out) == (1, "")
    assert "the cache is in use by 1 pod (team/train-0)" in said.err
    assert "--force" in said.err
    assert api.objects == before
    said = podferry("cache", "delete", "digits", "--force", "--kubeconfig", api.kubeconfig)
    assert said.code == 0
    assert len(api.objects) < len(before)


def test_who_may_not_ask_for_readers_removes_nothing(podferry, api):
    api.holders[f"GET podferry-0 {STATUS_PATH}"] = lambda _: (403, b'{"kind": "Status"}')
    before = dict(api.objects)
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert (said.code, said.out) == (1, "")
    assert "Use an account that may get pods/proxy" in said.err
    assert api.objects == before


def test_what_is_left_of_a_cache_can_be_removed(podferry, api):
    path = "/api/v1/namespaces/podferry/serviceaccounts/podferry-cache-digits"
    del api.objects[path]
    api.missing.add(f"{path}/token")
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert said.code == 0, said.err
    assert said.out.splitlines() == [f"{one} removed" for one in REMOVED if "serviceaccount" not in one]


def test_few_of_many_readers_are_named(podferry, api):
    readers = tuple(f"team/train-{number}" for number in range(live_caches.SHOWN_READERS + 1))
    say(api, "podferry-0", HolderStatus("n1", (), (), readers=readers))
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert "by 6 pods" in said.err
    assert "team/train-4, …" in said.err


def test_a_holder_that_does_not_respond_is_named(podferry, api):
    api.holders.clear()
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert said.code == 0
    assert "podferry-0 does not respond" in said.err


def test_pods_that_keep_its_claims_are_named(podferry, api):
    words = ("--source", "s3://b/c", "--size", "1Gi", "--shared", "/var/lib/podferry", "--readers", "team")
    for document in yaml.safe_load_all(podferry("cache", "create", "digits", *words).out):
        api.add(document)
    claim = {"persistentVolumeClaim": {"claimName": "podferry-cache-digits"}}
    holder = {"app.kubernetes.io/name": "podferry-cache", "podferry.io/cache": "digits"}
    of_job = {**holder, "app.kubernetes.io/name": "podferry-cache-job"}
    for name, volumes, labels in (
        ("train-0", [claim], {}),
        ("train-1", [claim], of_job),
        ("other", [{"emptyDir": {}}], {}),
        ("holder", [claim], holder),
    ):
        metadata = {"name": name, "namespace": "team", "labels": labels}
        api.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"volumes": volumes}})
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert said.code == 0
    assert "2 pods, ended or not, still keep claims of the cache from going" in said.err
    assert "(team/train-0, team/train-1)" in said.err
    assert "before you create digits again" in said.err


def test_who_may_not_list_pods_removes_all_the_same(podferry, api, monkeypatch):
    words = ("--source", "s3://b/c", "--size", "1Gi", "--shared", "/var/lib/podferry", "--readers", "team")
    for document in yaml.safe_load_all(podferry("cache", "create", "digits", *words).out):
        api.add(document)
    answer = LiveApi.answer

    def refuse(self, method, url, *rest):
        return (403, b"{}") if url.endswith("/team/pods") else answer(self, method, url, *rest)

    monkeypatch.setattr(LiveApi, "answer", refuse)
    said = podferry("cache", "delete", "digits", "--kubeconfig", api.kubeconfig)
    assert (said.code, said.err) == (0, "")
    assert "persistentvolumeclaim/podferry-cache-digits removed" in said.out
