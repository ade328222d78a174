"""Validates Jobs at `kubectl apply`, before their pods would be refused.

A Job's template is converted to the pod that it would create, as far as that is known.
"""

from __future__ import annotations

from typing import Any

from podferry.contract.errors import Problem
from podferry.contract.pod_owner import COMPLETION_INDEX
from podferry.webhook.inject import inject
from podferry.webhook.pod_json import Json
from podferry.webhook.policy import Policy
from podferry.webhook.resolve import Namespace


def template_problems(job: Json, namespace: Namespace, policy: Policy) -> tuple[Problem, ...]:
    """What is wrong with the pods of a Job; empty if nothing is, or if they have not opted in."""
    return inject(pod_from_job(job), namespace, policy).problems


def pod_from_job(job: Json) -> dict[str, Any]:
    """The first pod that the Job would create."""
    metadata, spec = job.get("metadata") or {}, job.get("spec") or {}
    template = spec.get("template") or {}
    of_pod = template.get("metadata") or {}
    annotations = dict(of_pod.get("annotations") or {})
    if spec.get("completionMode") == "Indexed":
        annotations[COMPLETION_INDEX] = "0"
    name = metadata.get("name") or metadata.get("generateName") or ""
    owners = metadata.get("ownerReferences") or [{"kind": "Job", "name": name, "controller": True}]
    return {
        "metadata": {**of_pod, "annotations": annotations, "ownerReferences": owners},
        "spec": template.get("spec") or {},
    }
