"""Creates a step's job, or attaches to the one that an earlier attempt of the step has created.

The job's name follows from run and step, and its creation is conditional: two attempts never run two jobs.
Its owner is the step's pod, so that Kubernetes deletes it with that pod or the run, however they end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.job_kind import JobKind, Phase
from podferry.components.cluster_job.step_pod import NODE_ANNOTATION, RUN_ANNOTATION, StepIdentity
from podferry.contract.errors import AlreadyExists, NotFound, Refused, Unavailable
from podferry.contract.workloads import map_at

PATIENCE = 300.0
"""Seconds to wait for the API server, and until an earlier job of this name is gone."""
POLL_SECONDS = 2.0
Json = dict[str, Any]
Say = Callable[[str], None]


def create_or_attach(
    api: ApiServer, kind: JobKind, step: StepIdentity, spec: Mapping[str, Any], say: Say
) -> Json:
    """The step's job, running or ended well.

    Raises:
        Refused: The name belongs to another object, or an earlier job is not deleted in time; also what
            admission refuses.
        FerryError: Other errors of the API server.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        waiting_for = f"an earlier {kind.kind} {step.job_name} is not deleted"
        try:
            found = _created(api, kind, step, spec, say) or _attached(api, kind, step, say)
            if found is not None:
                return found
        except Unavailable as error:
            # It may have been created nevertheless: the next try attaches to it.
            say(f"{error} Trying again")
            waiting_for = str(error)
        if time.monotonic() > deadline:
            raise Refused.of(
                waiting_for, f"for {PATIENCE:.0f} s", "Look at the job, its finalizers and events"
            )
        time.sleep(POLL_SECONDS)


def delete(api: ApiServer, kind: JobKind, job: Mapping[str, Any]) -> None:
    """Delete a job and its pods; nothing if it is gone, or replaced by another one of its name."""
    metadata = job["metadata"]
    path = kind.path(metadata["namespace"], metadata["name"])
    with contextlib.suppress(NotFound, AlreadyExists):
        api.delete(path, metadata["uid"])


def delete_own(api: ApiServer, kind: JobKind, step: StepIdentity) -> None:
    """Delete the job of a step, whether its creation was answered or not; nothing if there is none."""
    with contextlib.suppress(NotFound, Refused):
        found = api.get(kind.path(step.namespace, step.job_name))
        _require_own(kind, step, found)
        delete(api, kind, found)


def _created(
    api: ApiServer, kind: JobKind, step: StepIdentity, spec: Mapping[str, Any], say: Say
) -> Json | None:
    """The job, or None if the name is taken."""
    path = kind.path(step.namespace)
    metadata: Json = {"name": step.job_name, "annotations": step.annotations}
    job = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": dict(spec)}
    try:
        if step.owner:
            # podferry's webhook leaves alone what another object owns: its owner was checked instead.
            api.create(path, job, dry_run=True)
            metadata["ownerReferences"] = [step.owner]
        made = api.create(path, job)
    except AlreadyExists:
        return None
    say(f"created {kind.kind} {step.job_name}")
    return made


def _attached(api: ApiServer, kind: JobKind, step: StepIdentity, say: Say) -> Json | None:
    """The job that has the name, or None if it is being deleted: then its name is soon free."""
    path = kind.path(step.namespace, step.job_name)
    try:
        found = api.get(path)
        _require_own(kind, step, found)
        if "deletionTimestamp" in found["metadata"]:
            return None
        if kind.state(found).phase is Phase.FAILED:
            say(f"{kind.kind} {step.job_name} of an earlier attempt has failed: it is created again")
            delete(api, kind, found)
            return None
        say(f"attached to {kind.kind} {step.job_name} of an earlier attempt")
        # The earlier attempt's pod may be deleted at any time.
        owners = {"metadata": {"ownerReferences": [step.owner]}} if step.owner else {}
        return api.merge(path, owners) if owners else found
    except NotFound:
        return None


def _require_own(kind: JobKind, step: StepIdentity, found: Json) -> None:
    annotations = map_at(found, "metadata", "annotations")
    if {key: annotations.get(key) for key in step.annotations} == step.annotations:
        return
    run, node = (annotations.get(key) or "none" for key in (RUN_ANNOTATION, NODE_ANNOTATION))
    what = f"{kind.kind} {step.job_name} exists, and is not of this step"
    measured = f"its {RUN_ANNOTATION} is {run}, its {NODE_ANNOTATION} {node}"
    raise Refused.of(what, measured, "Delete or rename it; this step has not changed it")
