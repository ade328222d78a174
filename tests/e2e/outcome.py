"""The outcome of a pod or a Job, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.cluster.process import tail


@dataclass(frozen=True)
class ContainerOutcome:
    """One container.

    Attributes:
        name: Its name.
        state: `waiting`, `running` or `terminated`, as the kubelet reports it.
        restarts: How often it was started again.
        log: What it has written, of its last start.
    """

    name: str
    state: Mapping[str, Any]
    restarts: int
    log: str

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or None if it still runs."""
        code = self.state.get("terminated", {}).get("exitCode")
        return None if code is None else int(code)

    @property
    def reason(self) -> str:
        """Why it waits or has ended: `Completed`, `Error`, `OOMKilled`, `PodInitializing`, …"""
        return str(self._detail.get("reason", ""))

    @property
    def message(self) -> str:
        """Its termination message, or what it waits for."""
        return str(self._detail.get("message", ""))

    @property
    def _detail(self) -> Mapping[str, Any]:
        return {key: value for one in self.state.values() for key, value in one.items()}

    @property
    def seconds(self) -> float:
        """From its start to its end, rounded to seconds by the kubelet."""
        ended = self.state["terminated"]
        return (moment(ended["finishedAt"]) - moment(ended["startedAt"])).total_seconds()


@dataclass(frozen=True)
class PodOutcome:
    """One pod.

    Attributes:
        object: As the API server has it.
        logs: By container.
    """

    object: Mapping[str, Any] = field(repr=False)
    logs: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.object["metadata"]["name"])

    @property
    def phase(self) -> str:
        """`Pending`, `Running`, `Succeeded` or `Failed`."""
        return str(self.object["status"]["phase"])

    @property
    def containers(self) -> dict[str, ContainerOutcome]:
        """All containers, init containers first."""
        status = self.object["status"]
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        return {
            one["name"]: ContainerOutcome(
                one["name"], one.get("state", {}), one["restartCount"], self.logs.get(one["name"], "")
            )
            for one in every
        }

    def __getitem__(self, name: str) -> ContainerOutcome:
        """A container by its name."""
        return self.containers[name]

    def __str__(self) -> str:
        lines = [f"pod {self.name}: {self.phase} {self.object['status'].get('message', '')}"]
        for one in self.containers.values():
            lines += [f"  {one.name}: {one.exit_code} {one.reason} {one.message}", tail(one.log, 30)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Outcome:
    """A pod, or a Job with all pods that it has made and that still exist.

    Attributes:
        phase: `Succeeded` or `Failed`; for a Job the same of `Complete` or `Failed`.
        reason, message: Why it failed.
        pods: In the order in which they were made.
    """

    phase: str
    reason: str
    message: str
    pods: tuple[PodOutcome, ...]

    @property
    def succeeded(self) -> bool:
        """Whether all is well."""
        return self.phase == "Succeeded"

    @property
    def pod(self) -> PodOutcome:
        """The last pod."""
        return self.pods[-1]

    def __getitem__(self, name: str) -> ContainerOutcome:
        """A container of the last pod."""
        return self.pod[name]

    def __str__(self) -> str:
        head = " ".join(part for part in (self.phase, self.reason, self.message) if part)
        return "\n".join([head, *map(str, self.pods)])


def moment(text: str) -> datetime:
    """A time from the API."""
    return datetime.fromisoformat(text)


def ending(manifest: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """How a pod or Job has ended: phase, reason, message; or None if it still runs."""
    status = manifest.get("status", {})
    if manifest["kind"] == "Pod":
        if status.get("phase") not in {"Succeeded", "Failed"}:
            return None
        return status["phase"], status.get("reason", ""), status.get("message", "")
    for condition in status.get("conditions", []):
        if condition["status"] == "True" and condition["type"] in {"Complete", "Failed"}:
            phase = "Succeeded" if condition["type"] == "Complete" else "Failed"
            return phase, condition.get("reason", ""), condition.get("message", "")
    return None
