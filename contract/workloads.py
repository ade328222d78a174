"""Workloads: where each kind has pod templates, and what its controller sets on the first pod of each. Pure.

Labels and variables are those that podferry reads (`podferry.contract.pod_rank`), with the same sources.
Members of other types than expected count as absent: custom resources may have no schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podferry.contract.pod_rank import COMPLETION_INDEX, FIRST_ROLES, JOBSET, KUBEFLOW, LWS, VOLCANO

Json = Mapping[str, Any]
Path = tuple[str, ...]


class FirstPod(msgspec.Struct, frozen=True):
    """What a controller sets on its first pod of a template.

    Attributes:
        owner: Kind, API version and name of the pod's owner.
        labels: Labels.
        variables: Variables of each container.
        pods: How many pods there are, None if that is unknown.
    """

    owner: tuple[str, str, str]
    labels: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    pods: int | None = None


class Place(msgspec.Struct, frozen=True):
    """Where a workload has a template.

    Attributes:
        workload: The whole object.
        steps: The keys and indexes that lead to the template.
    """

    workload: Json
    steps: Path

    @property
    def name(self) -> str:
        """The workload's."""
        return _name(self.workload)

    def ancestor(self, depth: int) -> Json:
        """The map after that many steps, from the end if negative; an empty one if it is a list."""
        return map_at(self.workload, *self.steps[:depth])


Rule = Callable[[Place], FirstPod]


def value_at(node: Any, steps: Path) -> Any:
    """The value at a path, or None."""
    for step in steps:
        if isinstance(node, list):
            node = node[int(step)] if step.isdecimal() and int(step) < len(node) else None
        else:
            node = node.get(step) if isinstance(node, Mapping) else None
    return node


def map_at(node: Any, *steps: str) -> Json:
    """The map at a path; an empty one if there is none."""
    value = value_at(node, steps)
    return value if isinstance(value, Mapping) else {}


def _name(workload: Json) -> str:
    metadata = map_at(workload, "metadata")
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _count(node: Any, *steps: str) -> int | None:
    value = value_at(node, steps)
    return value if isinstance(value, int) else None


def _own(place: Place, labels: Mapping[str, str], pods: int | None, **variables: str) -> FirstPod:
    """A pod whose owner is the workload itself."""
    owner = (str(place.workload["kind"]), str(place.workload["apiVersion"]), place.name)
    return FirstPod(owner, labels, variables, pods)


def _job(place: Place) -> FirstPod:
    spec = place.ancestor(1)
    indexed = spec.get("completionMode") == "Indexed"
    pods = _count(spec, "completions" if indexed else "parallelism") or 1
    return _own(place, {COMPLETION_INDEX: "0"} if indexed else {}, pods)


def _replicated_job(place: Place) -> FirstPod:
    """A pod of a JobSet: its webhook makes its Jobs Indexed unless they say otherwise."""
    replicated = place.ancestor(-len(("template", "spec", "template")))
    name, replicas = str(replicated.get("name") or ""), _count(replicated, "replicas") or 1
    job = map_at(replicated, "template", "spec")
    labels = {
        f"{JOBSET}jobset-name": place.name,
        f"{JOBSET}replicatedjob-name": name,
        f"{JOBSET}replicatedjob-replicas": str(replicas),
        f"{JOBSET}job-index": "0",
    }
    if job.get("completionMode", "Indexed") == "Indexed":
        labels[COMPLETION_INDEX] = "0"
    pods = _count(job, "completions") or _count(job, "parallelism") or 1
    return FirstPod(("Job", "batch/v1", f"{place.name}-{name}-0"), labels, {}, replicas * pods)


def _trainjob(place: Place) -> FirstPod:
    """A pod of its trainer, whose Job is an Indexed one."""
    return _own(place, {COMPLETION_INDEX: "0"}, None)


def _kubeflow(place: Place) -> FirstPod:
    replicas, role = place.ancestor(2), place.steps[2]
    roles = {str(one).lower() for one in replicas}
    labels = {
        f"{KUBEFLOW}job-name": place.name,
        f"{KUBEFLOW}replica-type": role.lower(),
        f"{KUBEFLOW}replica-index": "0",
    }
    variables = {}
    if place.workload["kind"] in {"PyTorchJob", "XGBoostJob"} and "master" in roles:
        variables["RANK"] = "0" if role.lower() == "master" else "1"
    if place.workload["kind"] == "TFJob":
        cluster: dict[str, list[str]] = {one: [] for one in sorted(roles)}
        variables["TF_CONFIG"] = msgspec.json.encode({"cluster": cluster}).decode()
    return _own(place, labels, _count(place.ancestor(3), "replicas") or 1, **variables)


def _mpi(place: Place) -> FirstPod:
    role, both = place.steps[2].lower(), bool(place.ancestor(1).get("runLauncherAsWorker"))
    labels = {f"{KUBEFLOW}job-name": place.name, f"{KUBEFLOW}job-role": role}
    if role == "worker" or both:
        labels[f"{KUBEFLOW}replica-index"] = str(int(role == "worker" and both))
    return _own(place, labels, _count(place.ancestor(3), "replicas") or 1)


def _paddle_operator(place: Place) -> FirstPod:
    role = place.steps[1]
    return _own(
        place, {"paddle-res-name": f"{place.name}-{role}-0"}, _count(place.ancestor(2), "replicas") or 1
    )


def _ray(place: Place) -> FirstPod:
    group, name = place.ancestor(-1), place.name
    if place.workload["kind"] == "RayJob":
        name += "-raycluster-00000"
    is_worker = "workerGroupSpecs" in place.steps
    counts = [_count(group, key) for key in ("replicas", "maxReplicas")]
    pods = max((one for one in counts if one is not None), default=None) if is_worker else 1
    labels = {"ray.io/cluster": name, "ray.io/node-type": "worker" if is_worker else "head"}
    return FirstPod(("RayCluster", "ray.io/v1", name), labels, {}, pods)


def _leader_worker_set(place: Place) -> FirstPod:
    group = place.ancestor(2)
    leads = place.steps[-1] == "leaderTemplate" or "leaderTemplate" not in group
    labels = {f"{LWS}name": place.name, f"{LWS}group-index": "0", f"{LWS}worker-index": "0" if leads else "1"}
    size, both = _count(group, "size") or 1, "leaderTemplate" in group
    pods = size if not both else 1 if leads else size - 1
    return FirstPod(("StatefulSet", "apps/v1", place.name), labels, {}, pods)


def _volcano(place: Place) -> FirstPod:
    task, plugins = place.ancestor(3), map_at(place.workload, "spec", "plugins")
    role = str(task.get("name") or "default")
    labels = {f"{VOLCANO}job-name": place.name, f"{VOLCANO}task-spec": role, f"{VOLCANO}task-index": "0"}
    # The plugin's names of the tasks, unless its arguments give others.
    variables = {"RANK": "0" if role in FIRST_ROLES else "1"} if "pytorch" in plugins else {}
    return _own(place, labels, _count(task, "replicas") or 1, **variables)


REPLICATED_JOB = "spec.replicatedJobs.*.template.spec.template"
TRAINJOB_PATCH = f"spec.runtimePatches.*.trainingRuntimeSpec.template.{REPLICATED_JOB}"
TRAINJOB_OVERRIDE = "spec.podTemplateOverrides.*"
RUNTIME = f"spec.template.{REPLICATED_JOB}"
PARTS = frozenset({TRAINJOB_PATCH, TRAINJOB_OVERRIDE, RUNTIME})
"""Parts of a template: a pod is made of those of a TrainJob and of its runtime together."""
RAY_GROUPS = ("headGroupSpec.template", "workerGroupSpecs.*.template")

WORKLOADS: Mapping[tuple[str, str], tuple[Rule, tuple[str, ...]]] = {
    ("batch", "Job"): (_job, ("spec.template",)),
    ("batch.volcano.sh", "Job"): (_volcano, ("spec.tasks.*.template",)),
    ("batch.paddlepaddle.org", "PaddleJob"): (
        _paddle_operator,
        ("spec.ps.template", "spec.worker.template", "spec.heter.template"),
    ),
    ("jobset.x-k8s.io", "JobSet"): (_replicated_job, (REPLICATED_JOB,)),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        _leader_worker_set,
        ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"),
    ),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): (_replicated_job, (RUNTIME,)),
    ("trainer.kubeflow.org", "TrainingRuntime"): (_replicated_job, (RUNTIME,)),
    ("trainer.kubeflow.org", "TrainJob"): (_trainjob, (TRAINJOB_PATCH, TRAINJOB_OVERRIDE)),
    ("kubeflow.org", "PyTorchJob"): (_kubeflow, ("spec.pytorchReplicaSpecs.*.template",)),
    ("kubeflow.org", "TFJob"): (_kubeflow, ("spec.tfReplicaSpecs.*.template",)),
    ("kubeflow.org", "XGBoostJob"): (_kubeflow, ("spec.xgbReplicaSpecs.*.template",)),
    ("kubeflow.org", "PaddleJob"): (_kubeflow, ("spec.paddleReplicaSpecs.*.template",)),
    ("kubeflow.org", "JAXJob"): (_kubeflow, ("spec.jaxReplicaSpecs.*.template",)),
    ("kubeflow.org", "MPIJob"): (_mpi, ("spec.mpiReplicaSpecs.*.template",)),
    ("ray.io", "RayCluster"): (_ray, tuple(f"spec.{group}" for group in RAY_GROUPS)),
    ("ray.io", "RayJob"): (_ray, tuple(f"spec.rayClusterSpec.{group}" for group in RAY_GROUPS)),
}
"""How pods of a template look, and where templates are, by API group and kind."""
