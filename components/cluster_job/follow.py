"""Runs a step's job: creates it or attaches to it, follows it, deletes it if the step is cancelled."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import msgspec

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.follower import Follower, Observation, Verdict
from podferry.components.cluster_job.job_kind import JobKind, belongs
from podferry.components.cluster_job.launch import create_or_attach, delete, delete_own
from podferry.components.cluster_job.pod_problems import Failure
from podferry.components.cluster_job.step_pod import StepIdentity
from podferry.components.log_tables import print_line
from podferry.contract.errors import AccessDenied, Changed, FerryError, NotFound, PermanentError, Unavailable

POLL_SECONDS = 2.0
OUTAGE_PATIENCE = 1800.0
"""Seconds without an answer of the API server until the step fails. The job continues; a retry attaches."""
DENIED_PATIENCE = 120.0
"""Seconds of refusals of what was allowed before: an API server that starts does not know all roles at once.

Seen with Kubernetes 1.34: it answers 403 meanwhile.
"""
LOG_LINES = 10
"""Of a failed container without a termination message."""


class Cancelled(BaseException):
    """The step was asked to end. No `Exception`: nothing on the way may handle it."""


def run_job(
    api: ApiServer, kind: JobKind, step: StepIdentity, spec: Mapping[str, Any], start_timeout: float = 0
) -> None:
    """Run the step's job to its end, and print its progress.

    Raises:
        PermanentError: It has failed; with the reasons of its pods.
        Changed: Somebody has deleted it.
        Unavailable: The API server has not answered for `OUTAGE_PATIENCE`; the job continues.
        AccessDenied: It has refused for `DENIED_PATIENCE` to show the job, which continues.
        FerryError: It could not be created.
        Cancelled, KeyboardInterrupt: The step was asked to end; the job is deleted.
    """
    job: Mapping[str, Any] | None = None
    with cancellable():
        try:
            job = create_or_attach(api, kind, step, spec, print_line)
            verdict = _followed(api, kind, job, start_timeout)
        except (Cancelled, KeyboardInterrupt):
            # First of all: in a KFP step the process has only milliseconds left.
            delete(api, kind, job) if job else delete_own(api, kind, step)
            print_line(f"the step was cancelled: {kind.kind} {step.job_name} is deleted")
            raise
        if verdict.given_up or (verdict.problems and kind.leaves_pods):
            delete(api, kind, job)
            print_line(f"{kind.kind} {step.job_name} is deleted: its pods would keep what they reserve")
    PermanentError.raise_any(verdict.problems)
    print_line(f"{kind.kind} {step.job_name} has succeeded")


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """SIGTERM raises `Cancelled` in the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return

    def cancel(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: nothing may interrupt the deletion
        raise Cancelled

    former = signal.signal(signal.SIGTERM, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _followed(api: ApiServer, kind: JobKind, job: Mapping[str, Any], start_timeout: float) -> Verdict:
    follower = Follower(kind, job["metadata"]["name"], start_timeout)
    answered = time.monotonic()
    silent = False
    while True:
        try:
            lines, verdict = _observed(api, kind, job, follower)
            if silent:
                print_line("the API server answers again")
            answered, silent = time.monotonic(), False
        except (Unavailable, AccessDenied) as error:
            patience = OUTAGE_PATIENCE if isinstance(error, Unavailable) else DENIED_PATIENCE
            if time.monotonic() - answered > patience:
                raise
            lines, verdict = [] if silent else [f"{error} The job continues; trying again"], None
            silent = True
        for line in lines:
            print_line(line)
        if verdict is not None:
            return verdict
        time.sleep(POLL_SECONDS)


def _observed(
    api: ApiServer, kind: JobKind, job: Mapping[str, Any], follower: Follower
) -> tuple[list[str], Verdict | None]:
    name = job["metadata"]["name"]
    found = _same_job(api, kind, job)
    pods, pods_denied = _listed(api, "pods", labelSelector=kind.pods(name))
    events, events_denied = _listed(api, "events", fieldSelector="type=Warning")
    pods = [one for one in pods if belongs(one, kind, name)]
    warnings = [_event_text(one) for one in events if _is_about(one, name, job)]
    failures = [_with_log(api, one) for one in follower.new_failures(pods)]
    seen = Observation(found, pods, [*warnings, *pods_denied, *events_denied], time.monotonic())
    return follower.observe(seen, failures)


def _listed(api: ApiServer, plural: str, **query: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Objects of the step's namespace, or why it may not list them: the job is followed without them."""
    try:
        return api.get(f"/api/v1/namespaces/{api.namespace}/{plural}", **query)["items"], []
    except AccessDenied as error:
        return [], [str(error)]


def _same_job(api: ApiServer, kind: JobKind, job: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = job["metadata"]
    what = f"{kind.kind} {metadata['name']} was deleted while it ran"
    remedy = "A retry of the step creates it again, and its training resumes"
    try:
        found = api.get(kind.path(metadata["namespace"], metadata["name"]))
    except NotFound as error:
        raise Changed.of(what, remedy=remedy) from error
    if found["metadata"]["uid"] != metadata["uid"] or "deletionTimestamp" in found["metadata"]:
        raise Changed.of(what, remedy=remedy)
    return found


def _is_about(event: Mapping[str, Any], name: str, job: Mapping[str, Any]) -> bool:
    """Whether an event is about the job, or what its controller made of it; none of an earlier job's."""
    about = str(event.get("involvedObject", {}).get("name") or "")
    # The whole seconds of a time: only some have fractions.
    when = str(event.get("lastTimestamp") or event.get("eventTime") or "")[: len("2026-01-01T00:00:00")]
    is_ours = about == name or about.startswith(f"{name}-")
    return is_ours and when >= str(job["metadata"]["creationTimestamp"]).removesuffix("Z")


def _event_text(event: Mapping[str, Any]) -> str:
    about = event["involvedObject"]
    message = str(event.get("message") or "").strip()
    return f"{about.get('kind')} {about.get('name')}: {event.get('reason')}: {message}"


def _with_log(api: ApiServer, failure: Failure) -> Failure:
    """The failure with the end of its container's log, if it has no message."""
    if failure.message or not failure.container:
        return failure
    with contextlib.suppress(FerryError):  # the pod may be gone, or its logs closed to the step
        text = api.log_tail(failure.pod, failure.container, LOG_LINES).strip()
        return msgspec.structs.replace(failure, message=f"its log ends with\n{text}" if text else "")
    return failure
