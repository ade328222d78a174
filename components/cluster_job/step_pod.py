"""Who a step is, from its own pod: names its job and its lineage, and owns the job. Pure.

KFP sets `KFP_POD_NAME` in every executor pod. A retried step is a new pod; its run and its node in the
pipeline stay, apart from the number of the attempt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.kfp_inputs import render
from podferry.contract.lineage import lineage_of
from podferry.contract.pod_owner import ATTEMPT, KFP, KFP_RUN_LABEL, NODE_NAME, PodOwner, pod_owner_of

POD_NAME_VARIABLE = "KFP_POD_NAME"
HASH_DIGITS = 12
MAX_LABEL_LENGTH = 20
"""Characters of the task in a job's name. With the hash and `-node-0-0-xxxxx`, the name of a pod stays below
63 characters: the limit of a host name."""
RUN_ANNOTATION = "jobs.podferry.io/run"
NODE_ANNOTATION = "jobs.podferry.io/node"
"""A job's annotations: the run and the node that it belongs to."""


class StepIdentity(msgspec.Struct, frozen=True):
    """A step of a run.

    Attributes:
        namespace: Where it runs, and its job with it.
        run: The run's id.
        node: The step in the pipeline, with its iterations and without its attempts.
        pipeline, task: As a lineage has them.
        owner: An ownerReference to the step's pod, or None outside a cluster.
    """

    namespace: str
    run: str
    node: str
    pipeline: str
    task: str
    owner: Mapping[str, Any] | None = None

    @property
    def job_name(self) -> str:
        """The same for every attempt, another one for every run and iteration; a DNS label of RFC 1035."""
        label = re.sub(r"[^a-z0-9]+", "-", self.task.rpartition(".")[2].lower()).strip("-")
        label = re.sub(r"^[^a-z]+", "", label)[:MAX_LABEL_LENGTH].strip("-") or "job"
        return f"{label}-{_hash([self.run, self.node])}"

    @property
    def annotations(self) -> dict[str, str]:
        """Of the job, by which a later attempt recognizes it."""
        return {RUN_ANNOTATION: self.run, NODE_ANNOTATION: self.node}

    def lineage(self, inputs: Mapping[str, Any]) -> str:
        """The lineage of the job's pods: of pipeline, task and inputs, so that a re-run resumes."""
        digest = _hash(sorted((name, render(value)) for name, value in inputs.items()))
        return lineage_of(PodOwner(self.namespace, KFP, "", self.pipeline, self.task, digest))


def identity_of(pod: Mapping[str, Any], namespace: str) -> StepIdentity:
    """The identity of a step, from its pod as the API server has it.

    Raises:
        InvalidSpec: It is a KFP executor, but its command cannot be read.
    """
    metadata, owner = pod["metadata"], pod_owner_of(pod, namespace)
    labels, annotations = (metadata.get(key) or {} for key in ("labels", "annotations"))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    return StepIdentity(
        namespace,
        labels.get(KFP_RUN_LABEL) or owner.run_id or metadata["uid"],
        ATTEMPT.sub("", annotations.get(NODE_NAME) or metadata["name"]),
        owner.pipeline or "pipeline",
        owner.task or metadata["name"],
        reference,
    )


def local_identity(namespace: str, run: str, task: str) -> StepIdentity:
    """The identity of a step that runs outside the cluster: each call is a run of its own."""
    return StepIdentity(namespace, run, task, "local", task)


def _hash(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:HASH_DIGITS]
