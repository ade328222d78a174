"""Pods in the shapes of their operators; the sources are in the module's docstring."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.pod_rank import RULES, PodRank, pod_rank_of

INDEX = "batch.kubernetes.io/job-completion-index"
ROLE, REPLICA = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
JOBSET, LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"
ORDINAL = "apps.kubernetes.io/pod-index"
FIRST, HELPER, UNKNOWN = PodRank(0), PodRank(None, follows=True), PodRank()


def pod(labels: dict[str, str], **variables: str) -> dict[str, Any]:
    env = [{"name": name, "value": text} for name, text in variables.items()]
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "pytorch", "env": env}]}}


def replica(role: str, index: int) -> dict[str, str]:
    return {ROLE: role, REPLICA: str(index)}


def after(rank: int) -> PodRank:
    return PodRank(rank, follows=True)


@pytest.mark.parametrize(
    ("kind", "labels", "expected"),
    [
        ("job", {}, UNKNOWN),
        ("job", {INDEX: "0"}, FIRST),
        ("job", {INDEX: "3"}, after(3)),
        ("statefulset", {ORDINAL: "4"}, after(4)),
        ("leaderworkerset", {f"{LWS}worker-index": "0", ORDINAL: "2"}, FIRST),
        ("leaderworkerset", {ORDINAL: "2"}, UNKNOWN),
        ("leaderworkerset", {f"{LWS}worker-index": "3"}, after(3)),
        ("leaderworkerset", {f"{LWS}leader-name": "x-1", ORDINAL: "2"}, after(2)),
        ("jobset", {INDEX: "1", f"{JOBSET}job-index": "0"}, after(1)),
        ("jobset", {INDEX: "0", f"{JOBSET}job-index": "0", f"{JOBSET}replicatedjob-replicas": "2"}, UNKNOWN),
        ("jobset", {INDEX: "0", f"{JOBSET}job-index": "1", f"{JOBSET}replicatedjob-replicas": "2"}, HELPER),
        ("pytorchjob", replica("worker", 2), after(2)),
        ("pytorchjob", {"replica-type": "worker", "replica-index": "1"}, after(1)),
        ("tfjob", replica("chief", 0), FIRST),
        ("tfjob", replica("worker", 0), FIRST),
        ("tfjob", replica("ps", 0), HELPER),
        ("tfjob", replica("evaluator", 0), HELPER),
        ("mpijob", {"training.kubeflow.org/job-role": "worker", REPLICA: "1"}, after(1)),
        ("mpijob", {"training.kubeflow.org/job-role": "launcher"}, UNKNOWN),
        ("mpijob", {"training.kubeflow.org/job-role": "launcher", REPLICA: "0"}, FIRST),
        ("mpijob", replica("launcher", 0), UNKNOWN),
        ("mpijob", replica("worker", 1), after(1)),
        ("paddlejob", {"paddle-res-name": "p-worker-2"}, after(2)),
        ("paddlejob", {"paddle-res-name": "p-ps-0"}, HELPER),
        ("paddlejob", replica("worker", 1), after(1)),
        ("paddlejob", replica("master", 0), HELPER),
        ("jaxjob", replica("worker", 1), after(1)),
        ("volcanojob", {"volcano.sh/task-index": "1"}, after(1)),
        ("raycluster", {"ray.io/node-type": "worker"}, UNKNOWN),
    ],
)
def test_ranks_by_labels(kind: str, labels: dict[str, str], expected: PodRank) -> None:
    assert pod_rank_of(kind, pod(labels)) == expected


@pytest.mark.parametrize("kind", ["pytorchjob", "xgboostjob"])
def test_a_master_is_rank_0_and_workers_follow(kind: str) -> None:
    """The operator sets RANK where there is a master; the index of a worker begins at 0 all the same."""
    assert pod_rank_of(kind, pod(replica("master", 0), RANK="0", WORLD_SIZE="2")) == FIRST
    assert pod_rank_of(kind, pod(replica("worker", 0), RANK="1", WORLD_SIZE="2")) == after(1)


def test_of_two_variables_of_a_name_the_last_counts() -> None:
    worker = pod(replica("worker", 0), RANK="7")
    worker["spec"]["containers"][0]["env"].append({"name": "RANK", "value": "1"})
    worker["spec"]["containers"][0]["env"].append({"name": "RANK", "valueFrom": {}})
    assert pod_rank_of("pytorchjob", worker) == after(1)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cluster": {"chief": ["a"], "worker": ["b"]}, "task": {"type": "worker", "index": 0}}, after(1)),
        ({"cluster": {"worker": ["b", "c"]}}, FIRST),
        ({"sparseCluster": {"chief": {"0": "a"}}}, after(1)),
        ({"cluster": ["chief"]}, FIRST),
        (["chief"], FIRST),
    ],
)
def test_with_a_chief_tensorflows_workers_follow(config: Any, expected: PodRank) -> None:
    assert pod_rank_of("tfjob", pod(replica("worker", 0), TF_CONFIG=json.dumps(config))) == expected


def test_volcanos_plugins_count_over_all_tasks() -> None:
    labels = {"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "0"}
    assert pod_rank_of("volcanojob", pod(labels, RANK="1")) == after(1)
    assert pod_rank_of("volcanojob", pod({}, VC_TASK_INDEX="2")) == after(2)


@pytest.mark.parametrize(("world", "rank"), [("8", 5), ("7", None), ("$(inputs.n)", None), ("", None)])
def test_several_jobs_of_a_jobset_need_the_world(world: str, rank: int | None) -> None:
    labels = {f"{JOBSET}job-index": "2", f"{JOBSET}replicatedjob-replicas": "4", INDEX: "1"}
    found = pod_rank_of("jobset", pod({**labels, "podferry.io/world": world}))
    assert found == PodRank(rank, follows=True)


@given(
    st.sampled_from([*RULES, "job"]),
    st.dictionaries(st.sampled_from([INDEX, ROLE, REPLICA, ORDINAL, f"{JOBSET}job-index"]), st.text()),
    st.dictionaries(st.sampled_from(["RANK", "TF_CONFIG", "VC_TASK_INDEX"]), st.text()),
)
def test_any_text_is_a_rank_or_none(kind: str, labels: dict[str, str], variables: dict[str, str]) -> None:
    found = pod_rank_of(kind, pod(labels, **variables))
    assert found.rank is None or found.follows == (found.rank > 0)


@given(st.integers(1, 8), st.booleans())
def test_exactly_one_pod_of_a_pytorchjob_is_first(workers: int, with_master: bool) -> None:
    """With any number of workers, whether they have a master or not, the ranks are 0 to world - 1."""
    pods = [pod(replica("master", 0), RANK="0")] if with_master else []
    for index in range(workers):
        variables = {"RANK": str(index + 1)} if with_master else {}
        pods.append(pod(replica("worker", index), **variables))
    places = [pod_rank_of("pytorchjob", one) for one in pods]
    assert [place.rank for place in places] == list(range(len(pods)))
    assert [place.follows for place in places] == [False, *[True] * (len(pods) - 1)]


def test_a_pod_without_metadata_has_no_rank() -> None:
    assert pod_rank_of("pytorchjob", {"metadata": None, "spec": None}) == UNKNOWN
