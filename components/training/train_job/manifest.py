"""The spec of a TrainJob whose pods have annotations, for each version of Kubeflow Trainer. Pure.

| Trainer | where a TrainJob sets annotations of pods |
|---|---|
| 2.2 and later | `spec.runtimePatches` |
| 2.1 | `spec.podTemplateOverrides` |
| 2.0 | nowhere: its `spec.annotations` reach the JobSet and its Jobs only |

Source: trainer, `manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml` of v2.0.0, v2.1.0 and v2.2.0. The
fields that the API server serves decide, not a version, which a cluster need not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podferry.components.cluster_job.served_schema import typed
from podferry.contract.errors import Refused
from podferry.contract.workloads import map_at

GROUP = "trainer.kubeflow.org"
MANAGER = "podferry.io/train-job"
"""Names the author of a runtime patch."""
ITEMS = "[]"
JOB_PATCH = ("runtimePatches", ITEMS, "trainingRuntimeSpec", "template", "spec", "replicatedJobs", ITEMS)
PATCHED = (*JOB_PATCH, "template", "spec", "template", "metadata", "annotations")
OVERRIDDEN = ("podTemplateOverrides", ITEMS, "metadata", "annotations")
Json = Mapping[str, Any]


def train_job_spec(
    schema: Json,
    runtime: Json,
    trainer: Json,
    more: Json,
    target: str,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """The spec of a TrainJob.

    Args:
        schema: Of a TrainJob's spec, as served.
        runtime: `kind` and `name` of the runtime.
        trainer: `spec.trainer`: image, command, numNodes, resourcesPerNode, …
        more: Other members of the spec.
        target: Name of the runtime's replicated Job whose pods train.
        annotations: Of its pods.

    Raises:
        Refused: The served TrainJob cannot annotate pods.
    """
    spec: dict[str, Any] = {
        **more,
        "runtimeRef": {"apiGroup": GROUP, **runtime},
        **({"trainer": trainer} if trainer else {}),
    }
    spec = typed(spec, schema)
    if annotations:
        field, entry = _annotated(schema, target, annotations)
        spec[field] = [*(spec.get(field) or []), entry]
    return spec


def _annotated(schema: Json, target: str, annotations: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The field that annotates pods, and the entry to add to it."""
    for path, entry in ENTRIES.items():
        if _serves(schema, path):
            return path[0], entry(target, dict(annotations))
    fields = ", ".join(sorted(map_at(schema, "properties"))) or "none"
    what = "this version of Kubeflow Trainer cannot annotate the pods of a TrainJob"
    remedy = "Use Trainer 2.1 or later, or annotate the pod template of the runtime and leave them out here"
    raise Refused.of(what, f"fields of its spec: {fields}", remedy)


def _patch(target: str, annotations: dict[str, str]) -> dict[str, Any]:
    pods = {"template": {"metadata": {"annotations": annotations}}}
    job = {"name": target, "template": {"spec": pods}}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def _override(target: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"targetJobs": [{"name": target}], "metadata": {"annotations": annotations}}


ENTRIES: Mapping[tuple[str, ...], Callable[[str, dict[str, str]], dict[str, Any]]] = {
    PATCHED: _patch,
    OVERRIDDEN: _override,
}


def _serves(schema: Json, path: tuple[str, ...]) -> bool:
    """Whether a schema has the field at a path."""
    for step in path:
        schema = map_at(schema, "items") if step == ITEMS else map_at(schema, "properties", step)
    return bool(schema)
