"""Runs the step `train_job`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.job_kind import TRAIN_JOB
from podferry.components.cluster_job.run import Finished, JobRequest, run_training
from podferry.components.cluster_job.served_schema import served_schema
from podferry.components.training.train_job.manifest import train_job_spec
from podferry.contract.errors import AccessDenied, NotFound

CLUSTER_RUNTIME = "ClusterTrainingRuntime"
RUNTIME_PATHS = {CLUSTER_RUNTIME: "clustertrainingruntimes", "TrainingRuntime": "trainingruntimes"}


class TrainJobRequest(JobRequest, frozen=True, kw_only=True):
    """The inputs of the step; see the component.

    Attributes:
        runtime, runtime_kind: Name and kind of the runtime.
        trainer: `spec.trainer`.
        spec: Other members of the spec.
        target: The replicated Job whose pods train.
    """

    runtime: str
    runtime_kind: str
    trainer: dict[str, Any]
    spec: dict[str, Any]
    target: str


def run_train_job(request: TrainJobRequest, run: str = "") -> Finished:
    """Run the job to its end; see `run_training`."""
    return run_training(TRAIN_JOB, request, run, partial(_spec, request))


def _spec(request: TrainJobRequest, api: ApiServer, annotations: Mapping[str, str]) -> dict[str, Any]:
    schema = served_schema(api, TRAIN_JOB)
    _require_runtime(api, request)
    runtime = {"kind": request.runtime_kind, "name": request.runtime}
    return train_job_spec(schema, runtime, request.trainer, request.spec, request.target, annotations)


def _require_runtime(api: ApiServer, request: TrainJobRequest) -> None:
    """Raise `NotFound` with the runtimes that there are; Trainer's webhook checks it where we may not."""
    plural = RUNTIME_PATHS.get(request.runtime_kind, "")
    if not plural:
        remedy = f"Write {' or '.join(RUNTIME_PATHS)}"
        raise NotFound.of("runtime_kind: there is no such kind", request.runtime_kind, remedy)
    place = "" if request.runtime_kind == CLUSTER_RUNTIME else f"namespaces/{api.namespace}/"
    try:
        found = api.get(f"/apis/{TRAIN_JOB.api_version}/{place}{plural}")["items"]
    except (AccessDenied, NotFound):
        return
    names = sorted(one["metadata"]["name"] for one in found)
    if request.runtime not in names:
        what = f"there is no {request.runtime_kind} {request.runtime}"
        raise NotFound.of(what, f"there are: {', '.join(names) or 'none'}", "Write the name of one of them")
