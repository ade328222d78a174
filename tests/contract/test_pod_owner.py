from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.pod_owner import PodOwner, kfp_inputs_of, pod_owner_of, variables_of

Pod = dict[str, Any]
TASKS = {
    "executor-plain": ("two-step", "produce"),
    "executor-annotated-emptydir": ("two-step", "consume"),
    "executor-fstring": ("fstr", "cc"),
    "executor-fstring-annotated": ("fstr", "use"),
    "executor-parallelfor": ("more", "each"),
    "executor-retry": ("more", "flaky"),
}
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_OF_POD = "apps.kubernetes.io/pod-index"
JOBSET, LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"


def test_recorded_steps_are_known_by_pipeline_and_task(
    recorded: Callable[[str], Pod], executor_name: str
) -> None:
    pod = recorded(executor_name)
    owner = pod_owner_of(pod)
    assert (owner.pipeline, owner.task) == TASKS[executor_name]
    assert (owner.namespace, owner.kind, owner.name) == ("kubeflow", "kfp", "")
    assert owner.run_id == pod["metadata"]["labels"]["pipeline/runid"]
    assert len(owner.inputs_hash) == 12


def test_recorded_pods_of_other_kinds_are_known_by_their_node(
    recorded: Callable[[str], Pod], other_name: str
) -> None:
    owner = pod_owner_of(recorded(other_name))
    names = {
        "argo-plain-step": "trivial3",
        "container-driver": "two-step-2pxlx.root.produce-driver",
        "dag-driver": "two-step-2pxlx.root-driver",
    }
    assert owner == PodOwner("kubeflow", "workflow", names[other_name])


@pytest.mark.parametrize(
    ("node", "task"),
    [
        ("f(0).root(0).train(0).executor(0)", "train"),
        ("f(0).root(0).train(0).executor(2)", "train"),
        ("f.root.train.executor", "train"),
        ("f(0).root(0).tune(0).train(0).executor(0)", "tune.train"),
        (
            "f(0).root(0).for-loop-2(0).iteration-iterations(3:3)(0).iteration-item(0).each(0).executor(0)",
            "each",
        ),
        ("f(0).root(0).condition-branches-1(0).condition-2(0).train-2(0).executor(0)", "train-2"),
        ("f(0).root(0).exit-handler-1(0).for-loop-9(0).executor(0)", "for-loop-9"),
        ("f(0)", "fit"),
        ("", "fit"),
    ],
)
def test_the_task_is_read_from_the_node(executor: Callable[..., Pod], node: str, task: str) -> None:
    assert pod_owner_of(executor({}, node=node)).task == task


@pytest.mark.parametrize(
    ("kind", "name", "labels", "expected"),
    [
        ("Job", "digits", {}, ("job", "digits", None)),
        ("Job", "digits", {INDEX: "3"}, ("job", "digits", 3)),
        ("Job", "digits", {INDEX: "x"}, ("job", "digits", None)),
        (
            "Job",
            "s-w-1",
            {JOBSET + "jobset-name": "s", JOBSET + "replicatedjob-replicas": "1", INDEX: "2"},
            ("jobset", "s", 2),
        ),
        (
            "Job",
            "t-node-0",
            {
                JOBSET + "jobset-name": "t",
                "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
                INDEX: "1",
            },
            ("trainjob", "t", 1),
        ),
        ("PaddleJob", "p", {"paddle-res-name": "p-worker-2"}, ("paddlejob", "p", 2)),
        ("PaddleJob", "p", {"paddle-res-name": "p-ps-2"}, ("paddlejob", "p", None)),
        ("PaddleJob", "p", {"training.kubeflow.org/replica-index": "1"}, ("paddlejob", "p", 1)),
        ("StatefulSet", "s", {INDEX_OF_POD: "4"}, ("statefulset", "s", 4)),
        ("StatefulSet", "l", {LWS + "name": "l", INDEX_OF_POD: "1"}, ("leaderworkerset", "l-1", None)),
        (
            "StatefulSet",
            "l-1",
            {LWS + "name": "l", LWS + "group-index": "1", LWS + "worker-index": "2"},
            ("leaderworkerset", "l-1", 2),
        ),
        ("PyTorchJob", "t", {"training.kubeflow.org/replica-index": "1"}, ("pytorchjob", "t", 1)),
        (
            "Job",
            "m-launcher",
            {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "m"},
            ("mpijob", "m", None),
        ),
        ("RayCluster", "r-raycluster-x7k2p", {"ray.io/node-type": "head"}, ("rayjob", "r", None)),
        ("RayCluster", "r", {"ray.io/node-type": "head"}, ("raycluster", "r", None)),
        ("ReplicaSet", "web-5d9f", {"pod-template-hash": "5d9f"}, ("deployment", "web", None)),
        ("ReplicaSet", "web", {}, ("replicaset", "web", None)),
    ],
)
def test_owners(
    owned: Callable[..., Pod],
    kind: str,
    name: str,
    labels: dict[str, str],
    expected: tuple[str, str, int | None],
) -> None:
    owner = pod_owner_of(owned(kind, name, labels))
    assert (owner.kind, owner.name, owner.rank) == expected


def test_volcanos_kind_job_is_not_kubernetes_job(owned: Callable[..., Pod]) -> None:
    """Both may have one name, and different owners never share a lineage."""
    pod = owned("Job", "digits", {"volcano.sh/task-index": "1"})
    pod["metadata"]["ownerReferences"][0]["apiVersion"] = "batch.volcano.sh/v1alpha1"
    owner = pod_owner_of(pod)
    assert (owner.kind, owner.name, owner.rank, owner.follows) == ("volcanojob", "digits", 1, True)


def test_a_bare_pod_is_known_by_its_name_or_its_prefix() -> None:
    assert pod_owner_of({"metadata": {"name": "a"}}, "team") == PodOwner("team", "pod", "a")
    assert pod_owner_of({"metadata": None, "spec": None}, "team") == PodOwner("team", "pod", "")
    assert pod_owner_of({"metadata": {}, "spec": {"containers": None}}, "team") == PodOwner("team", "pod", "")
    named = {"metadata": {"name": "a-x1y2z", "generateName": "a-", "namespace": "own"}}
    assert pod_owner_of(named) == PodOwner("own", "pod", "a-")
    assert pod_owner_of(named, "asked").namespace == "asked"
    assert pod_owner_of({}).namespace == "default"


def test_the_controller_is_the_owner(owned: Callable[..., Pod]) -> None:
    pod = owned("Job", "real")
    pod["metadata"]["ownerReferences"].insert(0, {"kind": "ConfigMap", "name": "other"})
    assert pod_owner_of(pod).name == "real"


def test_variables_of_a_step(recorded: Callable[[str], Pod]) -> None:
    pod = recorded("executor-parallelfor")
    variables = variables_of(pod_owner_of(pod), kfp_inputs_of(pod))
    assert (variables.pipeline, variables.task, variables.job) == ("more", "each", None)
    assert variables.inputs["x"] == "x2"
    assert variables.inputs_hash == pod_owner_of(pod).inputs_hash


def test_variables_of_a_job(owned: Callable[..., Pod]) -> None:
    variables = variables_of(pod_owner_of(owned("Job", "digits", {INDEX: "0"})), world=4)
    assert (variables.namespace, variables.job, variables.rank, variables.world) == ("team", "digits", 0, 4)
    assert (variables.pipeline, variables.inputs, variables.inputs_hash) == (None, {}, None)


def test_a_bare_pod_is_not_a_job() -> None:
    assert variables_of(PodOwner("team", "pod", "a")).job is None
