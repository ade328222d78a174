"""Whether the pod of this process asked for an agent and did not get one."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from podferry.contract.errors import FerryError, Problem
from podferry.contract.spec import PREFIX
from podferry.sidecar.runtime.messages import print_problems
from podferry.trainer.pod_api import PodApi, pod_api
from podferry.webhook.pod.pod_json import annotations_of
from podferry.webhook.pod.stamp import SHARED, STATUS_STAMP

POD_NAME_VARIABLES = ("KFP_POD_NAME", "POD_NAME")
LOOK_SECONDS = 2.0
"""For the question: a warning must not delay training where the API server cannot be reached."""


def warn_if_not_injected(environ: Mapping[str, str]) -> None:
    """Print a warning if this process's pod asked for an agent and got none."""
    problem = not_injected(pod_api(environ, timeout=LOOK_SECONDS), environ)
    print_problems([problem] if problem else [], "yellow")


def not_injected(api: PodApi | None, environ: Mapping[str, str]) -> Problem | None:
    """A warning if this pod has podferry's annotations; None if not, or if that cannot be found out."""
    if api is None:
        return None
    name = next(filter(None, map(environ.get, POD_NAME_VARIABLES)), None) or socket.gethostname()
    try:
        return missing_injection(api.pod(name))
    except (FerryError, OSError, ValueError):  # most pods may not read pods, and need not
        return None


def missing_injection(pod: Mapping[str, Any]) -> Problem | None:
    """A warning about a pod that opted in and has no agent."""
    given = {key: text for key, text in annotations_of(pod).items() if key.startswith(PREFIX)}
    status = given.pop(STATUS_STAMP, None)
    if not given or given.get(f"{PREFIX}inject") == "false" or status == SHARED:
        return None
    what = f"this pod has {', '.join(sorted(given))}, but no agent was injected"
    remedy = "Install the webhook, and check that it serves this namespace"
    return Problem(what, f"{STATUS_STAMP}: {status}" if status else "the webhook has not seen it", remedy)
