"""Why the pod of a holder does not run, as Kubernetes says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def pod_problem(pod: Json) -> str:
    """One line, or an empty text if Kubernetes does not say anything."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    found = [_container_problem(one) for one in containers]
    if not containers:
        conditions = status.get("conditions") or []
        found = [str(one.get("message", "")) for one in conditions if one.get("status") == "False"]
    return next((" ".join(text.split()) for text in found if text), "")


def _container_problem(container: Json) -> str:
    """What it wrote when it ended last, else why it waits."""
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if "running" in state or not (waiting or ended):
        return ""
    return str(ended.get("message") or waiting.get("message") or waiting.get("reason") or ended.get("reason"))
