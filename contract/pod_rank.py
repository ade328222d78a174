"""Determines a pod's rank in its training run from what its controller sets on it.

| kind | rank |
|---|---|
| Job, JobSet, TrainJob | completion index; in a JobSet of several Jobs also the Job's index |
| StatefulSet, LeaderWorkerSet | ordinal; index in the group |
| PyTorchJob, XGBoostJob | `RANK`: the master is 0, workers follow; without a master the worker's index |
| TFJob | chief (or master) is 0, workers follow; without a chief the worker's index |
| MPIJob, PaddleJob, JAXJob | the worker's index; that of a launcher that works as worker 0 |
| Volcano Job | `RANK`, else the task's index |

Parameter servers and evaluators have no rank: they train with others, but nobody waits for a checkpoint of
theirs. Nor have an MPI launcher that only launches, and Ray's pods, whose ranks are given to actors.

Sources, read in each operator's code: Kubernetes `pkg/controller/job`; jobset `jobset_controller.go`; lws
`pod_webhook.go`; training-operator `pytorch/envvar.go`, `xgboost/xgboost.go`, `tensorflow/tensorflow.go`,
`paddlepaddle/envvar.go`; mpi-operator `mpi_job_controller.go`; paddle-operator `paddlejob_helper.go`; Volcano
`job_controller_util.go` and its plugins `env` and `pytorch`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from podferry.contract.spec import PREFIX

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOBSET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
POD_INDEX = "apps.kubernetes.io/pod-index"
KUBEFLOW = "training.kubeflow.org/"
VOLCANO = "volcano.sh/"
NUMBER = re.compile(r"\d{1,9}")
PADDLE_RESOURCE = re.compile(r".*-(worker|ps|heter)-(\d{1,9})")
FIRST_ROLES = frozenset({"master", "chief"})
"""Replica types that come before the workers, in the kinds that count them among the trainers."""

Names = Mapping[str, str]


class PodRank(msgspec.Struct, frozen=True):
    """A pod's place in its training run.

    Attributes:
        rank: Its number, from 0; None if unknown.
        follows: Whether another pod of the training run is its rank 0.
    """

    rank: int | None = None
    follows: bool = False


UNKNOWN = PodRank()
HELPER = PodRank(None, follows=True)
"""A parameter server or an evaluator: of a training run, but not one of its trainers."""


def pod_rank_of(kind: str, pod: Mapping[str, Any]) -> PodRank:
    """The rank of a pod whose owner is of this kind, as `podferry.contract.pod_owner` names it."""
    rule = RULES.get(kind, _completion)
    return rule(labels_and_annotations(pod.get("metadata") or {}), _environment(pod))


def labels_and_annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Labels and annotations together: controllers use one or the other, or both."""
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def _environment(pod: Mapping[str, Any]) -> dict[str, str]:
    """Variables that a container of the pod sets to a text; of several the last, as in Kubernetes."""
    return dict(_variables(pod))


def _variables(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            if isinstance(variable.get("value"), str):
                yield variable.get("name", ""), variable["value"]


def _number(names: Names, *candidates: str) -> int | None:
    """The number under the first of these names that has one."""
    texts = (names.get(one) or "" for one in candidates)
    return next((int(text) for text in texts if NUMBER.fullmatch(text)), None)


def _ranked(rank: int | None) -> PodRank:
    return PodRank(rank, follows=bool(rank))


def _completion(labels: Names, _: Names) -> PodRank:
    return _ranked(_number(labels, COMPLETION_INDEX))


def _ordinal(labels: Names, _: Names) -> PodRank:
    return _ranked(_number(labels, POD_INDEX))


def _leader_worker(labels: Names, _: Names) -> PodRank:
    # A leader's ordinal is that of its group. Its workers' webhook may not have set their index yet.
    is_worker = f"{LWS}leader-name" in labels
    return _ranked(_number(labels, f"{LWS}worker-index", *((POD_INDEX,) if is_worker else ())))


def _jobset(labels: Names, _: Names) -> PodRank:
    """Number among the pods of all replicas of one Job of a JobSet.

    A pod's metadata does not have the number of pods of a Job, so several replicas need `podferry.io/world`.
    """
    index, job = _number(labels, COMPLETION_INDEX), _number(labels, f"{JOBSET}job-index")
    jobs = _number(labels, f"{JOBSET}replicatedjob-replicas") or 1
    if jobs == 1:
        return _ranked(index)
    follows, world = bool(job or index), _number(labels, f"{PREFIX}world")
    if job is None or not world or world % jobs:
        return PodRank(None, follows)
    return PodRank(job * (world // jobs) + (index or 0), follows)


def _replica(labels: Names) -> tuple[str, int | None]:
    """Role and index of a Kubeflow job's pod; older operators wrote the labels without their prefix."""
    role = labels.get(f"{KUBEFLOW}replica-type") or labels.get("replica-type") or ""
    return role.lower(), _number(labels, f"{KUBEFLOW}replica-index", "replica-index")


def _master_and_workers(labels: Names, environment: Names) -> PodRank:
    rank = _number(environment, "RANK")
    return _ranked(_replica(labels)[1] if rank is None else rank)


def _tensorflow(labels: Names, environment: Names) -> PodRank:
    role, index = _replica(labels)
    if role in FIRST_ROLES:
        return _ranked(index)
    if role and role != "worker":
        return HELPER
    first = FIRST_ROLES & _cluster_roles(environment.get("TF_CONFIG", ""))
    return _ranked(None if index is None else index + bool(first))


def _cluster_roles(text: str) -> set[str]:
    """The roles of the cluster that a TF_CONFIG describes."""
    try:
        config = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        return set()
    cluster = config.get("cluster") or config.get("sparseCluster")
    return {role.lower() for role in cluster} if isinstance(cluster, dict) else set()


def _mpi(labels: Names, _: Names) -> PodRank:
    role, index = _replica(labels)
    return UNKNOWN if role == "launcher" else _ranked(index)


def _paddle(labels: Names, _: Names) -> PodRank:
    own = PADDLE_RESOURCE.fullmatch(labels.get("paddle-res-name", ""))
    if own is not None:
        return _ranked(int(own[2])) if own[1] == "worker" else HELPER
    role, index = _replica(labels)
    # In a job that has one, the operator makes the master the parameter server and each worker a trainer.
    return HELPER if role == "master" else _ranked(index)


def _workers(labels: Names, _: Names) -> PodRank:
    return _ranked(_replica(labels)[1])


def _volcano(labels: Names, environment: Names) -> PodRank:
    rank = _number(environment, "RANK")
    index = _number({**environment, **labels}, f"{VOLCANO}task-index", "VC_TASK_INDEX", "VK_TASK_INDEX")
    return _ranked(index if rank is None else rank)


RULES: Mapping[str, Callable[[Names, Names], PodRank]] = {
    "statefulset": _ordinal,
    "leaderworkerset": _leader_worker,
    "jobset": _jobset,
    "trainjob": _jobset,
    "pytorchjob": _master_and_workers,
    "xgboostjob": _master_and_workers,
    "tfjob": _tensorflow,
    "mpijob": _mpi,
    "paddlejob": _paddle,
    "jaxjob": _workers,
    "volcanojob": _volcano,
}
"""Rules by the owner's kind; any other kind may have Indexed Jobs' label."""
