"""Determines a pod's owner or KFP step.

A pod's own name does not last: a retried KFP step and a replaced pod of a Job have new names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podferry.contract.code_version import UNKNOWN_CODE, CodeVersion
from podferry.contract.kfp_inputs import KfpInputs, read_kfp_inputs
from podferry.contract.pod_rank import JOBSET, KUBEFLOW, LWS, POD_INDEX, labels_and_annotations, pod_rank_of
from podferry.contract.variable_substitution import Variables

KFP = "kfp"
TRAINJOB_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of Kubeflow Trainer's steps, whose JobSet has the TrainJob's name."""
NODE_NAME = "workflows.argoproj.io/node-name"
"""Argo's path of a node: `flow(0).root(0).for-loop-2(0).train(0).executor(0)`, with attempts in brackets."""
KFP_RUN_LABEL = "pipeline/runid"
"""KFP's label with the run's id, on every pod of the run."""
ATTEMPT = re.compile(r"\(\d+\)")
BRACKETS = re.compile(r"\([^()]*\)")
COMPILED_LEVEL = re.compile(r"root|iteration-.*|(for-loop|condition|condition-branches|exit-handler)-\d+")
"""Levels of that path that KFP's compiler generates: their numbers change when the pipeline is edited."""
RAYJOBS_CLUSTER = re.compile(r"(.+)-raycluster-[a-z0-9]{5}")
"""The cluster that KubeRay up to 1.3 makes for an attempt of a RayJob; later ones leave out `raycluster`."""
VOLCANO_GROUP = "batch.volcano.sh/"
MPI_OPERATOR = "mpi-operator"
OWNERLESS = frozenset({"pod", "workflow", KFP})
"""Kinds whose name is not a job's."""


class PodOwner(msgspec.Struct, frozen=True):
    """The owner of a pod.

    Attributes:
        namespace: The pod's.
        kind: Of the owner, lower case (`job`, `jobset`, `trainjob`, `paddlejob` …); `volcanojob` for
            Volcano's kind Job; `pod` without an owner; `kfp` for a KFP step.
        name: The owner's; without an owner the pod's, or its generateName prefix.
        pipeline: KFP pipeline, else empty.
        task: KFP task below its inner pipelines (`tune.train`), else empty.
        inputs_hash: Hash of the KFP inputs, else empty.
        run_id: KFP run, else empty. It is not part of the lineage: a re-run resumes.
        rank: The pod's number in its training run, or None if unknown.
        follows: Whether another pod of the training run is its rank 0.
    """

    namespace: str
    kind: str
    name: str
    pipeline: str = ""
    task: str = ""
    inputs_hash: str = ""
    run_id: str = ""
    rank: int | None = None
    follows: bool = False


def kfp_inputs_of(pod: Mapping[str, Any]) -> KfpInputs | None:
    """The KFP inputs of a pod, or None if it is not an executor of a KFP step (drivers are not).

    Raises:
        InvalidSpec: It is an executor, but its command cannot be read.
    """
    containers = (pod.get("spec") or {}).get("containers") or []
    found = (read_kfp_inputs(container.get("command") or []) for container in containers)
    return next((inputs for inputs in found if inputs is not None), None)


def pod_owner_of(pod: Mapping[str, Any], namespace: str | None = None) -> PodOwner:
    """Determine a pod's owner; `namespace` is the admission request's, as the pod may not have one yet.

    Raises:
        InvalidSpec: It is a KFP executor, but its command cannot be read.
    """
    metadata = pod.get("metadata") or {}
    resolved = namespace or metadata.get("namespace") or "default"
    inputs = kfp_inputs_of(pod)
    if inputs is not None:
        task = _task(metadata, inputs)
        return PodOwner(resolved, KFP, "", inputs.pipeline, task, inputs.digest, inputs.run_id)
    kind, name = _owner(metadata)
    place = pod_rank_of(kind, pod)
    return PodOwner(resolved, kind, name, rank=place.rank, follows=place.follows)


def variables_of(
    owner: PodOwner,
    inputs: KfpInputs | None = None,
    world: int | None = None,
    code: CodeVersion = UNKNOWN_CODE,
) -> Variables:
    """The variables of a pod's annotations; `world` if known from elsewhere than its annotation."""
    return Variables(
        namespace=owner.namespace,
        job=None if owner.kind in OWNERLESS else owner.name,
        pipeline=owner.pipeline or None,
        task=owner.task or None,
        rank=owner.rank,
        world=world,
        inputs=inputs.texts if inputs else {},
        inputs_hash=owner.inputs_hash or None,
        code_hash=code.digest,
        image_hash=code.image_hash,
    )


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the topmost owner that the pod's own metadata names."""
    owners = metadata.get("ownerReferences") or []
    owner = next((one for one in owners if one.get("controller")), owners[0] if owners else None)
    if owner is None:
        return "pod", metadata.get("generateName") or metadata.get("name") or ""
    kind, name, labels = owner["kind"].lower(), owner["name"], labels_and_annotations(metadata)
    if kind == "job" and str(owner.get("apiVersion", "")).startswith(VOLCANO_GROUP):
        return "volcanojob", name
    return OWNERS.get(kind, _unchanged)(kind, name, labels)


def _unchanged(kind: str, name: str, _: Mapping[str, str]) -> tuple[str, str]:
    return kind, name


def _of_job(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    if JOBSET + "jobset-name" in labels:
        return "trainjob" if TRAINJOB_STEP in labels else "jobset", labels[JOBSET + "jobset-name"]
    if labels.get(f"{KUBEFLOW}operator-name") == MPI_OPERATOR and f"{KUBEFLOW}job-name" in labels:
        return "mpijob", labels[f"{KUBEFLOW}job-name"]  # the operator runs its launcher as a Job
    return kind, name


def _of_workflow(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    return kind, ATTEMPT.sub("", labels.get(NODE_NAME, name))


def _of_replicaset(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    template = labels.get("pod-template-hash")
    if template and name.endswith(f"-{template}"):
        return "deployment", name.removesuffix(f"-{template}")
    return kind, name


def _of_statefulset(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """One group of a LeaderWorkerSet trains by itself; its leaders' ordinal is the group's number."""
    if f"{LWS}name" not in labels:
        return kind, name
    group = labels.get(f"{LWS}group-index") or labels.get(POD_INDEX, "0")
    return "leaderworkerset", f"{labels[f'{LWS}name']}-{group}"


def _of_raycluster(kind: str, name: str, _: Mapping[str, str]) -> tuple[str, str]:
    match = RAYJOBS_CLUSTER.fullmatch(name)
    return ("rayjob", match[1]) if match else (kind, name)


OWNERS: Mapping[str, Callable[[str, str, Mapping[str, str]], tuple[str, str]]] = {
    "job": _of_job,
    "workflow": _of_workflow,
    "replicaset": _of_replicaset,
    "statefulset": _of_statefulset,
    "raycluster": _of_raycluster,
}
"""How the topmost owner is found for pods whose own owner is made by another object."""


def sibling_task(node: str, task: str) -> str:
    """A task with the inner pipelines above it; `node` is Argo's path of any node in the same pipeline."""
    return ".".join([*_inner_pipelines(_levels(node)), task])


def _task(metadata: Mapping[str, Any], inputs: KfpInputs) -> str:
    """The task and the inner pipelines above it, or the component's name if Argo gives no path."""
    levels = _levels(labels_and_annotations(metadata).get(NODE_NAME, ""))
    return ".".join([*_inner_pipelines(levels), levels[-1]]) if levels else inputs.component


def _levels(node: str) -> list[str]:
    """What is above an executor in Argo's path, without the workflow; empty for another node."""
    path = BRACKETS.sub("", node).split(".")
    return path[1:-1] if path[-1] == "executor" else []


def _inner_pipelines(levels: list[str]) -> list[str]:
    return [level for level in levels[:-1] if not COMPILED_LEVEL.fullmatch(level)]
