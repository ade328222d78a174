"""Why the pod of a holder does not run, as Kubernetes says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.errors import printable_text

Json = Mapping[str, Any]
STARTING = {"", "ContainerCreating", "PodInitializing"}
"""Why a container waits that is about to start."""


class PodProblem(msgspec.Struct, frozen=True):
    """Why a pod does not run.

    Attributes:
        text: One line: Kubernetes' word for it, and the message behind it.
        has_failed: Whether it does not start by itself soon; else it is being started.
    """

    text: str
    has_failed: bool


def pod_problem(pod: Json) -> PodProblem | None:
    """What is wrong; None if Kubernetes does not say anything."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    found = map(_container_problem, containers) if containers else map(_condition_problem, _unmet(status))
    return next((one for one in found if one is not None), None)


def _unmet(status: Json) -> list[Json]:
    return [one for one in status.get("conditions") or () if one.get("status") == "False"]


def _condition_problem(condition: Json) -> PodProblem | None:
    """Such as `Unschedulable`, with the scheduler's sentence."""
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    return _problem(reason, message, has_failed=reason == "Unschedulable")


def _container_problem(container: Json) -> PodProblem | None:
    """Why it waits, and what it wrote when it ended last."""
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if "running" in state or not (waiting or ended):
        return None
    reason, killed = str(waiting.get("reason") or ""), str(ended.get("reason") or "")
    reasons = ", ".join(
        dict.fromkeys(one for one in (reason, killed) if one not in {"", "Error", "Completed"})
    )
    message = _said(str(ended.get("message") or "")) or str(waiting.get("message") or "")
    return _problem(reasons or killed, message, has_failed=bool(ended) or reason not in STARTING)


def _said(message: str) -> str:
    """Of the end of a log, the problems that podferry has printed at its end; all of any other text."""
    problems = [line for line in message.splitlines() if line.startswith("podferry: ")]
    return " ".join(dict.fromkeys(problems)) or message


def _problem(reason: str, message: str, *, has_failed: bool) -> PodProblem | None:
    text = " ".join(": ".join(filter(None, (reason, message))).split())
    return PodProblem(printable_text(text), has_failed) if text else None
