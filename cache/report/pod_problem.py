"""Why the pod of a holder does not run, as Kubernetes says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from signal import Signals
from typing import Any

import msgspec

from podferry.contract.errors import printable_text
from podferry.contract.exit_codes import EXIT_NEVER

Json = Mapping[str, Any]
STARTING = {"", "ContainerCreating", "PodInitializing"}
"""Why a container waits that is about to start."""
ENDED = frozenset({"Error", "Completed"})
"""Kubernetes' words for a container that has ended by itself."""
AGAIN = "it has ended, and starts again"
SIGNALLED = 128
"""What a signal's number is added to."""


class PodProblem(msgspec.Struct, frozen=True):
    """Why a pod does not run.

    Attributes:
        text: One line: Kubernetes' word for it, and the message behind it.
        has_failed: Whether it has ended, or does not start by itself soon; else it is being started.
        refused: When its program ended because another try cannot help; empty if it has not.
    """

    text: str
    has_failed: bool
    refused: str = ""


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
    if "running" in state and not ended:
        return None
    reason = AGAIN if "running" in state else str(waiting.get("reason") or "")
    has_failed = bool(ended) or reason not in STARTING
    refused = str(ended.get("finishedAt") or "") if ended.get("exitCode") == EXIT_NEVER else ""
    killed = str(ended.get("reason") or "")
    reasons = dict.fromkeys(one for one in (reason, killed) if one and one not in ENDED)
    message = _ending(ended) or str(waiting.get("message") or "")
    return _problem(", ".join(reasons) or killed, message, has_failed=has_failed, refused=refused)


def _ending(ended: Json) -> str:
    """What a container that has ended said, or else its exit code."""
    code = int(ended.get("exitCode") or 0)
    return _said(str(ended.get("message") or "")) or (f"exit code {code}{_signal_of(code)}" if code else "")


def _signal_of(code: int) -> str:
    """The signal that an exit code stands for, as a shell counts them."""
    with suppress(ValueError):
        return f" ({Signals(code - SIGNALLED).name})"
    return ""


def _said(message: str) -> str:
    """Of the end of a log, the problems that podferry has printed at its end; all of any other text.

    Lines of a log in JSON say nothing of why it ends. Kubernetes cuts off the beginning of the first one.
    """
    lines = message.splitlines()
    problems = [line for line in lines if line.startswith("podferry: ")]
    other = (line for line in lines if not line.startswith("{") and not line.endswith("}"))
    return " ".join(dict.fromkeys(problems)) or "\n".join(other)


def _problem(reason: str, message: str, *, has_failed: bool, refused: str = "") -> PodProblem | None:
    text = " ".join(": ".join(filter(None, (reason, message))).split())
    return PodProblem(printable_text(text), has_failed, refused) if text else None
