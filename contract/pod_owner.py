"""Determines a pod's owner or KFP step, and its rank.

A pod's own name does not last: a retried KFP step and a replaced pod of a Job have new names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.kfp_inputs import KfpInputs, read_kfp_inputs
from podferry.contract.spec import PREFIX
from podferry.contract.variable_substitution import Variables

KFP = "kfp"
JOBSET = "jobset.sigs.k8s.io/"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
TRAINJOB_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of Kubeflow Trainer's steps, whose JobSet has the TrainJob's name."""
NODE_NAME = "workflows.argoproj.io/node-name"
"""Argo's path of a node: `flow(0).root(0).for-loop-2(0).train(0).executor(0)`, with attempts in brackets."""
ATTEMPT = re.compile(r"\(\d+\)")
BRACKETS = re.compile(r"\([^()]*\)")
COMPILED_LEVEL = re.compile(r"root|iteration-.*|(for-loop|condition|condition-branches|exit-handler)-\d+")
"""Levels of that path that KFP's compiler generates: their numbers change when the pipeline is edited."""
NUMBER = re.compile(r"\d{1,9}")
PADDLE_WORKER = re.compile(r".*-worker-(\d{1,9})")
OWNERLESS = frozenset({"pod", "workflow", KFP})
"""Kinds whose name is not a job's."""


class PodOwner(msgspec.Struct, frozen=True):
    """The owner of a pod.

    Attributes:
        namespace: The pod's.
        kind: Of the owner, lower case (`job`, `jobset`, `trainjob`, `paddlejob` …); `pod` without an owner;
            `kfp` for a KFP step.
        name: The owner's; without an owner the pod's, or its generateName prefix.
        pipeline: KFP pipeline, else empty.
        task: KFP task below its inner pipelines (`tune.train`), else empty.
        inputs_hash: Hash of the KFP inputs, else empty.
        run_id: KFP run, else empty. It is not part of the lineage: a re-run resumes.
        rank: The pod's number in its training run, or None if unknown.
    """

    namespace: str
    kind: str
    name: str
    pipeline: str = ""
    task: str = ""
    inputs_hash: str = ""
    run_id: str = ""
    rank: int | None = None


def kfp_inputs_of(pod: Mapping[str, Any]) -> KfpInputs | None:
    """The KFP inputs of a pod, or None if it is not an executor of a KFP step (drivers are not).

    Raises:
        InvalidSpec: It is an executor, but its command cannot be read.
    """
    containers = pod.get("spec", {}).get("containers", [])
    found = (read_kfp_inputs(container.get("command") or []) for container in containers)
    return next((inputs for inputs in found if inputs is not None), None)


def pod_owner_of(pod: Mapping[str, Any], namespace: str | None = None) -> PodOwner:
    """Determine a pod's owner; `namespace` is the admission request's, as the pod may not have one yet.

    Raises:
        InvalidSpec: It is a KFP executor, but its command cannot be read.
    """
    metadata = pod.get("metadata", {})
    resolved = namespace or metadata.get("namespace") or "default"
    inputs = kfp_inputs_of(pod)
    if inputs is not None:
        task = _task(metadata, inputs)
        return PodOwner(resolved, KFP, "", inputs.pipeline, task, inputs.digest, inputs.run_id)
    kind, name = _owner(metadata)
    return PodOwner(resolved, kind, name, rank=_rank(kind, metadata))


def variables_of(owner: PodOwner, inputs: KfpInputs | None = None, world: int | None = None) -> Variables:
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
    )


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Labels and annotations together: controllers use one or the other, or both."""
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the topmost owner that the pod's own metadata names."""
    owners = metadata.get("ownerReferences") or []
    owner = next((one for one in owners if one.get("controller")), owners[0] if owners else None)
    if owner is None:
        return "pod", metadata.get("generateName") or metadata.get("name") or ""
    kind, name, labels = owner["kind"].lower(), owner["name"], _labels(metadata)
    if kind == "job" and JOBSET + "jobset-name" in labels:
        return "trainjob" if TRAINJOB_STEP in labels else "jobset", labels[JOBSET + "jobset-name"]
    if kind == "workflow" and NODE_NAME in labels:
        return kind, ATTEMPT.sub("", labels[NODE_NAME])
    template = labels.get("pod-template-hash")
    if kind == "replicaset" and template and name.endswith(f"-{template}"):
        return "deployment", name.removesuffix(f"-{template}")
    return kind, name


def _task(metadata: Mapping[str, Any], inputs: KfpInputs) -> str:
    """The task and the inner pipelines above it, or the component's name if Argo gives no path."""
    path = BRACKETS.sub("", _labels(metadata).get(NODE_NAME, "")).split(".")
    if path[-1] != "executor" or len(path) < 3:
        return inputs.component
    *above, task = path[1:-1]
    return ".".join([*(level for level in above if not COMPILED_LEVEL.fullmatch(level)), task])


def _rank(kind: str, metadata: Mapping[str, Any]) -> int | None:
    labels = _labels(metadata)
    if kind == "statefulset":
        return _number(labels, "apps.kubernetes.io/pod-index")
    if kind == "paddlejob":
        match = PADDLE_WORKER.fullmatch(labels.get("paddle-res-name", ""))
        return int(match[1]) if match else _number(labels, "training.kubeflow.org/replica-index")
    if kind in {"jobset", "trainjob"}:
        return _jobset_rank(labels)
    return _number(labels, COMPLETION_INDEX)


def _jobset_rank(labels: Mapping[str, str]) -> int | None:
    """Number among the pods of all replicas of one Job of a JobSet.

    A pod's metadata does not have the number of pods of a Job, so several replicas need `podferry.io/world`.
    """
    index = _number(labels, COMPLETION_INDEX)
    jobs = _number(labels, JOBSET + "replicatedjob-replicas") or 1
    if jobs == 1:
        return index
    job, world = _number(labels, JOBSET + "job-index"), _number(labels, PREFIX + "world")
    if job is None or not world or world % jobs:
        return None
    return job * (world // jobs) + (index or 0)


def _number(labels: Mapping[str, str], name: str) -> int | None:
    text = labels.get(name, "")
    return int(text) if NUMBER.fullmatch(text) else None
