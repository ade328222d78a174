"""How long a pod may take to end: its last uploads are on their way then."""

from __future__ import annotations

from typing import NamedTuple

from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.pod_json import Json, spec_of
from podferry.webhook.policy import Policy

DEFAULT_GRACE_SECONDS = 30
"""Seconds, where a pod says nothing. Source: Kubernetes API, `terminationGracePeriodSeconds`."""
TRAINER_SHUTDOWN_SECONDS = 15
"""Seconds for the trainer to end in: only then the agent is told to."""
PENDING_CHECKPOINTS = 2
"""Checkpoints that may still be on their way, as many as the memory sum has room for beside those kept."""
MARGIN_SECONDS = 5
"""Seconds between the agent's own deadline and the kubelet's: for its last words."""


def own_grace(pod: Json) -> int:
    """What the pod has by itself, seconds."""
    has = spec_of(pod).get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if has is None else int(has)


def grace_of(pod: Json, spec: FerrySpec, policy: Policy) -> tuple[int, tuple[str, ...]]:
    """The pod's grace in seconds, never less than it has, and warnings.

    The last uploads, after the trainer's own end; what `podferry.io/grace` says goes before. Both stay within
    the policy's bound, which a pod's own value may be above.
    """
    own = own_grace(pod)
    if spec.grace is None and spec.checkpoints is None and spec.outputs is None:
        return own, ()
    uploads = _last_uploads(spec, policy)
    computed = max(
        policy.defaults.grace, TRAINER_SHUTDOWN_SECONDS + sum(upload.seconds for upload in uploads)
    )
    wished = spec.grace if spec.grace is not None else computed
    bound = policy.bounds.grace
    if wished <= bound:
        return max(own, wished), ()
    reason = f"{PREFIX}grace asks" if spec.grace is not None else f"{' and '.join(map(str, uploads))} ask"
    text = f"grace is {max(own, bound)} s: {reason} for {wished} s, the policy allows {bound} s"
    return max(own, bound), (text,)


class _Upload(NamedTuple):
    """What goes out at the end, and how fast."""

    what: str
    bytes: int
    rate: int

    @property
    def seconds(self) -> int:
        return -(-self.bytes // self.rate)

    def __str__(self) -> str:
        return f"{format_bytes(self.bytes)} of {self.what} at {format_bytes(self.rate)} a second"


def _last_uploads(spec: FerrySpec, policy: Policy) -> list[_Upload]:
    """What may still have to go out when the pod is deleted, one after the other.

    Two checkpoints: an upload that has only just begun, and what the trainer finishes before it ends, which
    many write on SIGTERM. There are more only where uploads are slower than saves at all times; no grace
    mends that, and the drain sends the newest first. All outputs: without an interval none has gone before.
    """
    rate, uploads = policy.defaults.upload_rate, []
    if spec.checkpoints and spec.checkpoints.size:
        limited = min(rate, spec.checkpoints.upload_limit or rate)
        uploads.append(_Upload("checkpoints", PENDING_CHECKPOINTS * spec.checkpoints.size, limited))
    if spec.outputs and spec.outputs.size:
        uploads.append(_Upload("outputs", spec.outputs.size, rate))
    return uploads


def drain_seconds(grace: int) -> int:
    """What of it the agent may take."""
    return max(grace - MARGIN_SECONDS, 1)
