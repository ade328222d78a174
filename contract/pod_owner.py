"""Where a pod comes from: its owner, or its KFP step, and its rank.

A pod's own name says nothing lasting: a retried KFP step and a replaced pod of a Job have new names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.kfp_inputs import KfpInputs, read_kfp_inputs
from podferry.contract.spec import PREFIX
from podferry.contract.substitution import Variables

KFP = "kfp"
JOBSET = "jobset.sigs.k8s.io/"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
TRAINJOB_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Kubeflow Trainer marks its steps with it; their JobSet bears the TrainJob's name."""
NODE_NAME = "workflows.argoproj.io/node-name"
"""Argo's path of a node: `flow(0).root(0).for-loop-2(0).train(0).executor(0)`, attempts in brackets."""
ATTEMPT = re.compile(r"\(\d+\)")
BRACKETS = re.compile(r"\([^()]*\)")
COMPILED_LEVEL = re.compile(r"root|iteration-.*|(for-loop|condition|condition-branches|exit-handler)-\d+")
"""Levels of that path that KFP's compiler made up: their numbers change when the pipeline is edited."""
NUMBER = re.compile(r"\d{1,9}")
PADDLE_WORKER = re.compile(r".*-worker-(\d{1,9})")
OWNERLESS = frozenset({"pod", "workflow", KFP})
"""Kinds whose name is not that of a job."""


class PodOwner(msgspec.Struct, frozen=True):
    """What a pod is a part of.

    Attributes:
        namespace: The pod's.
        kind: Of the owner, lower case (`job`, `jobset`, `trainjob`, `paddlejob` …); `pod` without an
            owner; `kfp` for a KFP step.
        name: The owner's; the pod's without one, its generateName prefix where the API server names it.
        pipeline: KFP pipeline, else empty.
        task: KFP task below its inner pipelines (`tune.train`), else empty.
        inputs_hash: Hash of the KFP inputs, else empty.
        run_id: KFP run, else empty. It is no part of the lineage: a re-run resumes.
        rank: The pod's number in its training, None where nothing says.
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
    """The KFP inputs of a pod, None where it is no executor of a KFP step (a driver is none).

    Raises:
        InvalidWish: An executor whose command cannot be read.
    """
    containers = pod.get("spec", {}).get("containers", [])
    found = (read_kfp_inputs(container.get("command") or []) for container in containers)
    return next((inputs for inputs in found if inputs is not None), None)


def pod_owner_of(pod: Mapping[str, Any], namespace: str | None = None) -> PodOwner:
    """Where a pod comes from.

    Args:
        pod: Its plain JSON, as the API server sends it to a webhook.
        namespace: The admission request's; a pod may still lack its own.

    Raises:
        InvalidWish: A KFP executor whose command cannot be read.
    """
    metadata = pod.get("metadata", {})
    place = namespace or metadata.get("namespace") or "default"
    inputs = kfp_inputs_of(pod)
    if inputs is not None:
        return PodOwner(
            place, KFP, "", inputs.pipeline, _task(metadata, inputs), inputs.digest, inputs.run_id, None
        )
    kind, name = _owner(metadata)
    return PodOwner(place, kind, name, rank=_rank(kind, metadata))


def variables_of(origin: PodOwner, inputs: KfpInputs | None = None, world: int | None = None) -> Variables:
    """What annotations of a pod may refer to.

    Args:
        origin: Where it comes from.
        inputs: Its KFP inputs.
        world: Number of pods of the training, where it is known from elsewhere than its annotation.
    """
    return Variables(
        namespace=origin.namespace,
        job=None if origin.kind in OWNERLESS else origin.name,
        pipeline=origin.pipeline or None,
        task=origin.task or None,
        rank=origin.rank,
        world=world,
        inputs=inputs.texts if inputs else {},
        inputs_hash=origin.inputs_hash or None,
    )


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Labels and annotations together: controllers set their marks as one or the other, or both."""
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def _owner(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the highest owner that the pod itself tells of."""
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
    """The task and the inner pipelines above it; the component's name where Argo does not tell."""
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

    The pod does not tell how many pods a Job has, so several replicas need `podferry.io/world`.
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
