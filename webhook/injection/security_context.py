"""Decides the user, group and capabilities of podferry's containers.

The agent reads, links and removes the trainer's files. A process of the same user needs no privileges for
that. If the trainer's image sets the user, it is unknown: then the agent is root with two capabilities, which
let it read, link and unlink files of any user in the pod, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.pod.pod_json import Json, spec_of

ENFORCE = "pod-security.kubernetes.io/enforce"
"""Label of a namespace. Source: Kubernetes, "Pod Security Admission"."""
RESTRICTED = "restricted"
NONROOT_USER = 65532
"""The user of our image, as in distroless images."""
CAPABILITIES = ("DAC_OVERRIDE", "FOWNER")
"""Read and unlink (the first), hard-link under `protected_hardlinks` and chmod (the second)."""
REMEDY = "Set runAsUser in the securityContext of the pod or of its training container"


class RunAs(msgspec.Struct, frozen=True):
    """User and group id of the agent; user 0 also if the trainer's is unknown, group None for the image's."""

    user: int
    group: int | None = None


NOBODY = RunAs(NONROOT_USER)
"""Where podferry runs nothing that touches files."""


def run_as_of(pod: Json, container: Json, labels: Mapping[str, str]) -> RunAs:
    """The trainer's user and group; `labels` are the namespace's.

    Raises:
        InvalidSpec: The user must not be root, but is not specified.
    """
    user, group = (_effective(pod, container, name) for name in ("runAsUser", "runAsGroup"))
    if not user:
        measured = "runAsUser is 0" if user == 0 else "no runAsUser"
        if labels.get(ENFORCE) == RESTRICTED:
            what = "the namespace enforces restricted Pod Security, so podferry cannot run as root"
            raise InvalidSpec.of(what, measured, REMEDY)
        if _effective(pod, container, "runAsNonRoot"):
            what = "the pod sets runAsNonRoot but takes its user from the image, which podferry cannot see"
            raise InvalidSpec.of(what, measured, REMEDY)
    return RunAs(user or 0, group)


def mode_warnings(pod: Json, container: Json, spec: FerrySpec) -> tuple[str, ...]:
    """Warnings for datasets that the trainer may not be able to read because of their file mode."""
    if _effective(pod, container, "runAsUser") is not None:
        return ()
    readable = 0o044 if (spec_of(pod).get("securityContext") or {}).get("fsGroup") is not None else 0o004
    return tuple(
        f"{PREFIX}{one.key('file-mode')} {one.file_mode:04o}: the files belong to root, since the "
        f"training container's user is unknown; users other than root cannot read them. {REMEDY}"
        for one in spec.datasets
        if not one.file_mode & readable
    )


@lru_cache(maxsize=64)
def security_context(run_as: RunAs) -> Mapping[str, Any]:
    """The agent's context; it meets restricted Pod Security if the trainer's user is known."""
    return _context(run_as, CAPABILITIES if run_as.user == 0 else ())


@lru_cache(maxsize=64)
def gate_context(run_as: RunAs) -> Mapping[str, Any]:
    """The gate's context: it only connects to loopback and never needs privileges."""
    return _context(run_as if run_as.user else RunAs(NONROOT_USER), ())


def _context(run_as: RunAs, added: tuple[str, ...]) -> dict[str, Any]:
    capabilities = {"drop": ["ALL"], **({"add": list(added)} if added else {})}
    group = {} if run_as.group is None else {"runAsGroup": run_as.group}
    return {
        "runAsUser": run_as.user,
        **group,
        "runAsNonRoot": run_as.user != 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": capabilities,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _effective(pod: Json, container: Json, name: str) -> Any:
    """A setting of the container, else of the pod."""
    own = (container.get("securityContext") or {}).get(name)
    return own if own is not None else (spec_of(pod).get("securityContext") or {}).get(name)
