import msgspec
import pytest

from podferry.cli.cache import warmup as module
from podferry.contract.cache_api import NODES_ANNOTATION, REFRESH_PATH, STATUS_PATH, HolderStatus
from podferry.contract.errors import Problem
from podferry.contract.status import DatasetStatus
from tests.cli.cache.conftest import add_pod, say

SOURCE = "s3://b/c"
HALF = HolderStatus("n1", (DatasetStatus(SOURCE, "/x", bytes=2048, bytes_done=1024),), ())
FULL = HolderStatus("n1", (DatasetStatus(SOURCE, "/x", bytes=2048, bytes_done=2048),), (SOURCE,))
BROKEN = HolderStatus("n1", (DatasetStatus(SOURCE, "/x"),), (), (Problem("the bucket is missing"),))
PODS = "/api/v1/namespaces/podferry/pods/podferry-0"
WORKLOAD = "/apis/apps/v1/namespaces/podferry/statefulsets/podferry-cache-digits"


@pytest.fixture
def warmup(podferry, api, monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    return lambda *words: podferry("cache", "warmup", "digits", *words, "--kubeconfig", api.kubeconfig)


def test_it_waits_until_each_holder_has_the_dataset(warmup, api):
    answers = iter([HALF, HALF, FULL])
    last = [HALF]

    def status(_):
        last[0] = next(answers, last[0])
        return 200, msgspec.json.encode(last[0])

    api.holders[f"GET podferry-0 {STATUS_PATH}"] = status
    said = warmup()
    assert (said.code, said.out) == (0, "digits: 1 holder with 2.0 KiB each\n")
    assert next(answers, None) is None


def test_holders_that_have_it_take_what_has_changed(warmup, api):
    busy = msgspec.structs.replace(FULL, refreshing=(SOURCE,))
    asked, answers = [], iter([FULL, busy, busy, FULL])

    def refresh(request):
        asked.append(request)
        return 202, b"{}"

    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = refresh
    api.holders[f"GET podferry-0 {STATUS_PATH}"] = lambda _: (200, msgspec.json.encode(next(answers)))
    said = warmup()
    assert (said.code, said.out) == (0, "digits: 1 holder with 2.0 KiB each\n")
    assert (len(asked), next(answers, None)) == (1, None)


def test_a_change_that_takes_too_long_is_named(warmup, api):
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = lambda _: (202, b"{}")
    say(api, "podferry-0", msgspec.structs.replace(FULL, refreshing=(SOURCE,)))
    said = warmup("--timeout", "0")
    assert said.code == 1
    assert "holders have not taken yet what has changed at the source (after 0 s)" in said.err


def test_holders_that_are_to_be_replaced_do_not_count(warmup, api):
    say(api, "podferry-0", FULL)
    workload = api.objects[WORKLOAD]
    workload["metadata"]["generation"] = 2
    revisions = {"currentRevision": "a", "updateRevision": "b"}
    states = iter(
        [
            {"observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"},
            {"observedGeneration": 2, **revisions},
            {"observedGeneration": 2, **revisions, "updatedReplicas": 1},
        ]
    )
    answered = []

    def status(_):
        workload["status"] = next(states, workload.get("status"))
        answered.append(workload["status"])
        return 200, msgspec.json.encode(FULL)

    workload["status"] = next(states)
    asked = []

    def refresh(_):
        asked.append(workload["status"])
        return 202, b"{}"

    api.holders[f"GET podferry-0 {STATUS_PATH}"] = status
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = refresh
    assert warmup().code == 0
    assert [one.get("updatedReplicas") for one in asked] == [1]


def test_a_source_that_cannot_be_listed_is_an_error_though_the_holder_serves(warmup, api):
    api.holders[f"POST podferry-0 {REFRESH_PATH}"] = lambda _: (202, b"{}")
    say(api, "podferry-0", msgspec.structs.replace(FULL, problems=BROKEN.problems))
    said = warmup()
    assert (said.code, said.out) == (1, "")
    assert "the bucket is missing" in said.err


def test_an_empty_cache_starts_again(warmup, podferry, api):
    say(api, "podferry-0", FULL)
    podferry("cache", "clear", "digits", "--empty", "--kubeconfig", api.kubeconfig)
    del api.objects[PODS]
    listed = podferry("cache", "ls", "digits", "-n", "podferry", "--kubeconfig", api.kubeconfig)
    assert "Empty" in listed.out
    api.on_patch = lambda _: add_pod(api, "podferry", "podferry-0")
    assert warmup().code == 0
    assert api.objects[WORKLOAD]["spec"]["replicas"] == 1


def test_holders_that_were_scaled_away_start_again_as_create_was_asked_for(warmup, api):
    say(api, "podferry-0", FULL)
    del api.objects[PODS]
    api.objects[WORKLOAD]["metadata"]["annotations"] = {NODES_ANNOTATION: "2"}
    api.objects[WORKLOAD]["spec"]["replicas"] = 0

    def start(_):
        for name in ("podferry-0", "podferry-1"):
            add_pod(api, "podferry", name)
            say(api, name, FULL)

    api.on_patch = start
    said = warmup()
    assert (said.code, said.out) == (0, "digits: 2 holders with 2.0 KiB each\n")
    assert "digits had no holders: 2 holders started" in said.err
    assert "kubectl scale -n podferry statefulset/podferry-cache-digits --replicas=N" in said.err


def test_a_pod_that_ends_does_not_count(warmup, api):
    say(api, "podferry-0", FULL)
    api.objects[PODS]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    said = warmup("--timeout", "0.01")
    assert said.code == 1
    assert "the dataset is complete at 0 of 1 holder" in said.err


def test_a_dataset_that_cannot_be_fetched(warmup, api):
    say(api, "podferry-0", BROKEN)
    said = warmup()
    assert (said.code, said.out) == (1, "")
    assert "the bucket is missing" in said.err


def test_the_time_is_over(warmup, api):
    say(api, "podferry-0", HALF)
    said = warmup("--timeout", "0.01")
    assert said.code == 1
    assert "the dataset is complete at 0 of 1 holder (after 0.01 s). Wait longer with --timeout" in said.err


def test_no_such_cache(warmup, podferry, api):
    said = podferry("cache", "warmup", "other", "--kubeconfig", api.kubeconfig)
    assert said.code == 1
    assert "there is no cache other" in said.err


def test_why_a_holder_does_not_run(warmup, api):
    api.holders.clear()
    ended = {"terminated": {"message": "podferry: the bucket is missing."}}
    status = {"containerStatuses": [{"state": {"waiting": {}}, "lastState": ended}]}
    api.objects[PODS]["status"] = status
    said = warmup("--timeout", "0.01")
    assert said.code == 1
    assert "podferry-0 does not respond: podferry: the bucket is missing" in said.err


def refused(second):
    ended = {"exitCode": 78, "finishedAt": f"2026-01-01T00:00:0{second}Z", "message": "podferry: no bucket."}
    return {"containerStatuses": [{"state": {"running": {}}, "lastState": {"terminated": ended}}]}


def test_a_holder_that_ends_because_another_try_cannot_help_is_not_waited_for(warmup, api):
    api.objects[PODS]["status"] = refused(1)
    looks = iter(range(3))

    def status(_):
        if next(looks, None) is None:
            api.objects[PODS]["status"] = refused(2)
        return 503, b""

    api.holders[f"GET podferry-0 {STATUS_PATH}"] = status
    said = warmup()
    assert said.code == 1
    assert "podferry: no bucket" in said.err
    assert "--timeout" not in said.err
    assert next(looks, None) is None


def test_what_a_holder_has_refused_before_may_have_been_mended(warmup, api):
    api.objects[PODS]["status"] = refused(1)
    looks = iter(range(3))
    starting = (503, b"")
    api.holders[f"GET podferry-0 {STATUS_PATH}"] = lambda _: (
        (200, msgspec.json.encode(FULL)) if next(looks, None) is None else starting
    )
    said = warmup()
    assert (said.code, said.out) == (0, "digits: 1 holder with 2.0 KiB each\n")


def test_what_may_be_mended_while_it_waits_is_printed_once(warmup, api):
    api.holders.clear()
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "digits" not found'}}
    api.objects[PODS]["status"] = {"containerStatuses": [{"state": waiting}]}
    lists = iter(range(4))

    def status(_):
        if next(lists, None) is None:
            api.objects[PODS]["status"] = {}
            return 200, msgspec.json.encode(FULL)
        return 503, b""

    api.holders[f"GET podferry-0 {STATUS_PATH}"] = status
    said = warmup()
    assert (said.code, said.out) == (0, "digits: 1 holder with 2.0 KiB each\n")
    assert said.err.count('secret "digits" not found') == 1
