"""As whom podferry's containers run, and with what rights.

The agent reads, links and removes the trainer's files. A process of the same user needs no rights for that.
Where the trainer's image decides on its user, that user is unknown: then the agent is root with two
capabilities, which reads, links and unlinks files of anybody in the pod and can do nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.pod_json import Json, spec_of

ENFORCE = "pod-security.kubernetes.io/enforce"
"""Label of a namespace. Source: Kubernetes, "Pod Security Admission"."""
RESTRICTED = "restricted"
NOBODY = 65532
"""The user of our image, as of distroless ones."""
CAPABILITIES = ("DAC_OVERRIDE", "FOWNER")
"""Read and unlink (the first), hard-link under `protected_hardlinks` and chmod (the second)."""
REMEDY = "Set runAsUser in the securityContext of the pod or of its training container"


class RunAs(msgspec.Struct, frozen=True):
    """As whom the agent runs.

    Attributes:
        user: Its user id; 0 also where the trainer's is unknown.
        group: Its group id; None for the image's.
    """

    user: int
    group: int | None = None


def run_as_of(pod: Json, container: Json, labels: Mapping[str, str]) -> RunAs:
    """The trainer's user and group.

    Args:
        pod: The pod.
        container: The training container.
        labels: Those of the namespace.

    Raises:
        InvalidSpec: It has to be another than root, and nothing says which.
    """
    user, group = (_effective(pod, container, name) for name in ("runAsUser", "runAsGroup"))
    if not user:
        measured = "runAsUser is 0" if user == 0 else "no runAsUser"
        if labels.get(ENFORCE) == RESTRICTED:
            what = "the namespace enforces restricted Pod Security, so podferry cannot run as root"
            raise InvalidSpec.of(what, measured, REMEDY)
        if _effective(pod, container, "runAsNonRoot"):
            what = "the pod says runAsNonRoot and leaves the user to its image, which podferry cannot see"
            raise InvalidSpec.of(what, measured, REMEDY)
    return RunAs(user or 0, group)


def mode_warnings(pod: Json, container: Json, spec: FerrySpec) -> tuple[str, ...]:
    """Datasets that the trainer may not be able to read: nobody but the agent's root, or a group, may."""
    if _effective(pod, container, "runAsUser") is not None:
        return ()
    readable = 0o044 if (spec_of(pod).get("securityContext") or {}).get("fsGroup") is not None else 0o004
    return tuple(
        f"{PREFIX}{one.key('file-mode')} {one.file_mode:04o}: the files belong to root, since nothing says "
        f"as whom the training container runs; another user than root cannot read them. {REMEDY}"
        for one in spec.datasets
        if not one.file_mode & readable
    )


def security_context(runner: RunAs) -> dict[str, Any]:
    """The agent's: restricted Pod Security holds for it wherever the trainer's user is known."""
    return _context(runner, CAPABILITIES if runner.user == 0 else ())


def gate_context(runner: RunAs) -> dict[str, Any]:
    """The gate's: it asks on loopback and never needs rights."""
    return _context(runner if runner.user else RunAs(NOBODY), ())


def _context(runner: RunAs, added: tuple[str, ...]) -> dict[str, Any]:
    capabilities = {"drop": ["ALL"], **({"add": list(added)} if added else {})}
    group = {} if runner.group is None else {"runAsGroup": runner.group}
    return {
        "runAsUser": runner.user,
        **group,
        "runAsNonRoot": runner.user != 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": capabilities,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _effective(pod: Json, container: Json, name: str) -> Any:
    """A setting of the container, else of the pod."""
    own = (container.get("securityContext") or {}).get(name)
    return own if own is not None else (spec_of(pod).get("securityContext") or {}).get(name)
