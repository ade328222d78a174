"""Why a pod of a job has failed, or does not start, from the pod as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podferry.contract.spec import PREFIX
from podferry.contract.workloads import map_at

Json = Mapping[str, Any]
STOPPED_CODES = frozenset({137, 143})
"""Exit codes of a container that was stopped with its pod: no reason for the job's end."""
NORMAL_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})
MISTAKES = frozenset(
    {
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
"""Reasons for which a container waits that time rarely mends. Source: kubelet `images/types.go`,
`kuberuntime_container.go`."""
STATUS = f"{PREFIX}status"


class Failure(msgspec.Struct, frozen=True):
    """The end of a container with another exit code than 0, or of a whole pod.

    Attributes:
        pod, container: Their names; no container if the pod itself has failed, as by an eviction.
        exit_code: Its exit code, or None.
        reason: Kubernetes' word: `Error`, `OOMKilled`, `Evicted`, …
        message: Its termination message, or the last lines of its log; may be empty.
        at: When, as Kubernetes writes it; orders failures.
    """

    pod: str
    container: str
    exit_code: int | None
    reason: str
    message: str = ""
    at: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies it: a container that is restarted may fail again."""
        return self.pod, self.container, self.at

    def __str__(self) -> str:
        if self.exit_code is None:
            text = f"pod {self.pod}: {self.reason}"
        else:
            text = f"pod {self.pod}, container {self.container}: exit code {self.exit_code} ({self.reason})"
        return f"{text}: {self.message}" if self.message else text


class Wait(msgspec.Struct, frozen=True):
    """Why a pod does not start.

    Attributes:
        pod: Its name.
        reason: Kubernetes' word: `Unschedulable`, `ImagePullBackOff`, …
        message: Its text.
    """

    pod: str
    reason: str
    message: str = ""

    @property
    def is_mistake(self) -> bool:
        """Whether waiting rarely helps."""
        return self.reason in MISTAKES

    def __str__(self) -> str:
        text = f"pod {self.pod} waits: {self.reason}"
        return f"{text}: {self.message}" if self.message else text


def failures_of(pod: Json) -> list[Failure]:
    """What has failed in a pod, the first one first; nothing that ended because its pod was deleted."""
    metadata, status = map_at(pod, "metadata"), map_at(pod, "status")
    name, leaving = str(metadata.get("name")), "deletionTimestamp" in metadata
    found = [
        Failure(
            name,
            container,
            int(ended["exitCode"]),
            str(ended.get("reason") or "Error"),
            str(ended.get("message") or "").strip(),
            str(ended.get("finishedAt") or ""),
        )
        for container, ended in _ended(status)
        if ended.get("exitCode") and not (leaving and ended["exitCode"] in STOPPED_CODES)
    ]
    if status.get("phase") == "Failed" and status.get("reason"):
        message = str(status.get("message") or "").strip()
        found.append(Failure(name, "", None, str(status["reason"]), message))
    return sorted(found, key=lambda one: one.at)


def _ended(status: Json) -> Iterator[tuple[str, Json]]:
    """Containers that have ended, init containers first; of a restarted one its last end."""
    for one in _statuses(status):
        for state in (map_at(one, "state"), map_at(one, "lastState")):
            if map_at(state, "terminated"):
                yield str(one.get("name")), map_at(state, "terminated")
                break


def waits_of(pod: Json) -> list[Wait]:
    """Why a pod does not start."""
    name, status = str(map_at(pod, "metadata").get("name")), map_at(pod, "status")
    found = [
        Wait(name, str(one.get("reason")), str(one.get("message") or ""))
        for one in status.get("conditions") or []
        if one.get("type") == "PodScheduled" and one.get("status") == "False"
    ]
    for one in _statuses(status):
        waiting = map_at(one, "state", "waiting")
        if str(waiting.get("reason") or "") not in NORMAL_WAITS:
            message = str(waiting.get("message") or "")
            found.append(Wait(name, str(waiting["reason"]), message))
    return found


def has_started(pods: Iterable[Json]) -> bool:
    """Whether a container has run, also one that stages the dataset."""
    return any(
        map_at(pod, "status").get("phase") not in {None, "Pending"}
        or any(
            {"running", "terminated"} & map_at(one, "state").keys()
            for one in _statuses(map_at(pod, "status"))
        )
        for pod in pods
    )


def not_injected(pod: Json) -> bool:
    """Whether a pod has podferry's annotations, but was created without podferry's webhook."""
    annotations = map_at(pod, "metadata", "annotations")
    return STATUS not in annotations and any(key.startswith(PREFIX) for key in annotations)


def _statuses(status: Json) -> list[Json]:
    keys = ("initContainerStatuses", "containerStatuses")
    return [one for key in keys for one in status.get(key) or []]
