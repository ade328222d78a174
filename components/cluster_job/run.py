"""The work of a step that runs a job, from its inputs to its outputs."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import stamina

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.follow import Cancelled, run_job
from podferry.components.cluster_job.job_kind import JobKind
from podferry.components.cluster_job.settings import annotations_of
from podferry.components.cluster_job.step_pod import (
    POD_NAME_VARIABLE,
    StepIdentity,
    identity_of,
    local_identity,
)
from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.spec import PREFIX

LINEAGE = f"{PREFIX}lineage"
CHECKPOINTS = f"{PREFIX}checkpoints"
START_PATIENCE = 120.0
"""Seconds to wait for the API server before there is a job."""
TERMINATION_LOG = Path("/dev/termination-log")
"""What a container writes here is in Argo's message of the step. Source: Argo `operator.go`."""
MAX_TERMINATION_MESSAGE = 4096
"""Bytes. Source: Kubernetes, "Determine the Reason for Pod Failure"."""
EXIT_CANCELLED = 128 + signal.SIGTERM


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs that all kinds of jobs have.

    Attributes:
        settings: podferry's of the training pods, by key.
        start_timeout: Seconds until a pod has to run; 0 for no limit.
    """

    settings: dict[str, Any]
    start_timeout: float = 0

    @property
    def training(self) -> dict[str, Any]:
        """The inputs that distinguish a training run from others."""
        fields = msgspec.structs.asdict(self)
        del fields["start_timeout"]
        return fields


class Finished(msgspec.Struct, frozen=True):
    """The outputs of a step that has run a job.

    Attributes:
        job: The job's name.
        lineage: Of its pods' checkpoints; empty without any.
        checkpoints: Their destination; empty without any.
    """

    job: str
    lineage: str
    checkpoints: str


def run_training(
    kind: JobKind,
    request: JobRequest,
    run: str,
    spec_of: Callable[[ApiServer, Mapping[str, str]], Mapping[str, Any]],
) -> Finished:
    """Run the job of a step to its end.

    Args:
        kind: The job's kind.
        request: The step's inputs.
        run: The run's id outside a cluster, or empty.
        spec_of: The job's spec, for the annotations of its training pods.

    Raises:
        FerryError: It was not created, has failed, or was not followed to its end; see `run_job`.
        SystemExit: The step was cancelled.
    """
    with reported():
        api = ApiServer.connect()
        for attempt in stamina.retry_context(on=Unavailable, attempts=None, timeout=START_PATIENCE):
            with attempt:
                step = this_step(api, run, kind.kind.lower())
                annotations = annotations_of(request.settings)
                if CHECKPOINTS in annotations:
                    annotations.setdefault(LINEAGE, step.lineage(request.training))
                spec = spec_of(api, annotations)
        run_job(api, kind, step, spec, request.start_timeout)
    return Finished(step.job_name, annotations.get(LINEAGE, ""), annotations.get(CHECKPOINTS, ""))


def this_step(api: ApiServer, run: str, task: str) -> StepIdentity:
    """The identity of the step that calls this, from its pod; outside a pod `task`, in a run of its own."""
    name = os.environ.get(POD_NAME_VARIABLE)
    if not name:
        return local_identity(api.namespace, run or uuid.uuid4().hex, task)
    return identity_of(api.get(f"/api/v1/namespaces/{api.namespace}/pods/{name}"), api.namespace)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Write the reasons of an error into the pod's message too, and end the process if it was cancelled."""
    try:
        yield
    except Cancelled:
        raise SystemExit(EXIT_CANCELLED) from None
    except FerryError as error:
        with contextlib.suppress(OSError):  # a container may not be allowed to write it
            if TERMINATION_LOG.exists():
                TERMINATION_LOG.write_bytes(str(error).encode()[:MAX_TERMINATION_MESSAGE])
        raise
