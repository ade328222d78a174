"""What the status of a TrainJob and of a PaddleJob means. Pure.

Sources: trainer `pkg/apis/trainer/v1alpha1/trainjob_types.go` (v2.0 to v2.2) and its plugin `jobset`;
paddle-operator `api/v1/paddlejob_types.go`, `controllers/paddlejob_helper.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgspec

from podferry.contract.pod_rank import JOBSET
from podferry.contract.workloads import map_at, value_at

Json = Mapping[str, Any]


class Phase(Enum):
    """Where a job is."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class JobState(msgspec.Struct, frozen=True):
    """A job's status.

    Attributes:
        phase: Where it is.
        reason: Its controller's text, such as `JobsFailed: jobset failed`; may be empty.
        progress: One line for people, the same as long as nothing has changed; may be empty.
    """

    phase: Phase
    reason: str = ""
    progress: str = ""


class JobKind(msgspec.Struct, frozen=True):
    """A kind of job.

    Attributes:
        kind, group, version, plural: As the API server names it.
        product: What serves it, for messages.
        state: Reads its status.
        pods: A label selector that matches its pods, and maybe others'.
        leaves_pods: Whether the other pods of a failed job keep running.
    """

    kind: str
    group: str
    version: str
    plural: str
    product: str
    state: Callable[[Json], JobState]
    pods: Callable[[str], str]
    leaves_pods: bool = False

    @property
    def api_version(self) -> str:
        """Group and version."""
        return f"{self.group}/{self.version}"

    def path(self, namespace: str, name: str = "") -> str:
        """The path of a job, or of all of a namespace."""
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}/{name}".rstrip("/")


def train_job_state(job: Json) -> JobState:
    """The state of a TrainJob, from its conditions."""
    status = map_at(job, "status")
    held = {one["type"]: one for one in _objects(status, "conditions") if one.get("status") == "True"}
    for kind, phase in (
        ("Complete", Phase.SUCCEEDED),
        ("Failed", Phase.FAILED),
        ("Suspended", Phase.SUSPENDED),
    ):
        if kind in held:
            return JobState(phase, _condition_text(held[kind]), _train_job_progress(status))
    return JobState(Phase.ACTIVE, progress=_train_job_progress(status))


def paddle_job_state(job: Json) -> JobState:
    """The state of a PaddleJob, from its phase."""
    status = map_at(job, "status")
    phase = str(status.get("phase") or "")
    roles = [
        f"{role}: {_counts(map_at(status, role))}"
        for role in ("ps", "worker", "heter")
        if map_at(status, role)
    ]
    progress = "; ".join([phase, *roles]) if phase else ""
    return JobState(PADDLE_PHASES.get(phase, Phase.ACTIVE), f"phase {phase}" if phase else "", progress)


def _train_job_progress(status: Json) -> str:
    jobs = [f"{one.get('name')}: {_counts(one)}" for one in _objects(status, "jobsStatus")]
    done, left = (
        value_at(status, ("trainerStatus", key))
        for key in ("progressPercentage", "estimatedRemainingSeconds")
    )
    if done is not None:
        jobs.append(f"{done}% done" + (f", {left} s left" if left is not None else ""))
    return "; ".join(jobs)


def _counts(numbers: Json) -> str:
    """Counts of pods or jobs: `2 running, 1 failed`."""
    shown = [f"{count} {name}" for name, count in numbers.items() if isinstance(count, int) and count]
    return ", ".join(shown) or "none yet"


def _condition_text(condition: Json) -> str:
    texts = (str(condition.get(key) or "") for key in ("reason", "message"))
    return ": ".join(text for text in texts if text)


def _objects(node: Json, key: str) -> list[Json]:
    return [one for one in node.get(key) or [] if isinstance(one, Mapping)]


PADDLE_PHASES = {
    "Completed": Phase.SUCCEEDED,
    "Succeed": Phase.SUCCEEDED,
    "Failed": Phase.FAILED,
    "Aborted": Phase.FAILED,
    "Terminated": Phase.FAILED,
}
TRAIN_JOB = JobKind(
    "TrainJob",
    "trainer.kubeflow.org",
    "v1alpha1",
    "trainjobs",
    "Kubeflow Trainer 2.1 or later",
    train_job_state,
    lambda name: f"{JOBSET}jobset-name={name}",
)
PADDLE_JOB = JobKind(
    "PaddleJob",
    "batch.paddlepaddle.org",
    "v1",
    "paddlejobs",
    "PaddlePaddle's operator",
    paddle_job_state,
    # The value of the label is the pod's name; see `belongs`.
    lambda _: "paddle-res-name",
    leaves_pods=True,
)


def belongs(pod: Json, kind: JobKind, name: str) -> bool:
    """Whether a pod that the selector matched is one of this job."""
    if kind is not PADDLE_JOB:
        return True
    owners = _objects(map_at(pod, "metadata"), "ownerReferences")
    return any(one.get("kind") == kind.kind and one.get("name") == name for one in owners)
