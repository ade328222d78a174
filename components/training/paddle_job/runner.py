"""Runs the step `paddle_job`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.job_kind import PADDLE_JOB
from podferry.components.cluster_job.run import Finished, JobRequest, run_training
from podferry.components.cluster_job.served_schema import served_schema
from podferry.components.cluster_job.settings import annotations_of
from podferry.components.training.paddle_job.manifest import paddle_job_spec


class PaddleJobRequest(JobRequest, frozen=True, kw_only=True):
    """The inputs of the step; see the component.

    Attributes:
        worker, servers: `spec.worker` and `spec.ps`.
        spec: Other members of the spec.
        server_settings: podferry's for the parameter servers, by key.
    """

    worker: dict[str, Any]
    servers: dict[str, Any]
    spec: dict[str, Any]
    server_settings: dict[str, Any]


def run_paddle_job(request: PaddleJobRequest, run: str = "") -> Finished:
    """Run the job to its end; see `run_training`."""
    return run_training(PADDLE_JOB, request, run, partial(_spec, request))


def _spec(request: PaddleJobRequest, api: ApiServer, annotations: Mapping[str, str]) -> dict[str, Any]:
    schema = served_schema(api, PADDLE_JOB)
    roles = {"worker": annotations, "ps": annotations_of(request.server_settings)}
    return paddle_job_spec(schema, request.worker, request.servers, request.spec, roles)
