"""Computes the termination grace of a pod, in which its last uploads must finish."""

from __future__ import annotations

from typing import NamedTuple

from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.pod.pod_json import Json, spec_of
from podferry.webhook.policy.policy import Policy

DEFAULT_GRACE_SECONDS = 30
"""Default of Kubernetes. Source: Kubernetes API, `terminationGracePeriodSeconds`."""
TRAINER_SHUTDOWN_SECONDS = 15
"""Time for the trainer to end, before the agent gets SIGTERM."""
PENDING_CHECKPOINTS = 2
"""Checkpoints that may still be waiting for upload: those that the memory sum adds to the kept ones."""
MARGIN_SECONDS = 5
"""Time between the agent's own deadline and the kubelet's, to report its end."""


def current_grace(pod: Json) -> int:
    """The pod's own grace, seconds."""
    grace = spec_of(pod).get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if grace is None else int(grace)


def grace_of(pod: Json, spec: FerrySpec, policy: Policy) -> tuple[int, tuple[str, ...]]:
    """The pod's grace in seconds, never less than its own, and warnings.

    It covers the trainer's end and the last uploads, unless `podferry.io/grace` sets it. Both stay within the
    policy's bound, which only a pod's own value may exceed.
    """
    current = current_grace(pod)
    if spec.grace is None and spec.checkpoints is None and spec.outputs is None:
        return current, ()
    uploads = _last_uploads(spec, policy)
    needed = TRAINER_SHUTDOWN_SECONDS + sum(upload.seconds for upload in uploads)
    requested = spec.grace or max(policy.defaults.grace, needed)
    bound = policy.bounds.grace
    if requested <= bound:
        return max(current, requested), ()
    reason = f"{PREFIX}grace requests" if spec.grace else f"{' and '.join(map(str, uploads))} need"
    text = f"grace is {max(current, bound)} s: {reason} {requested} s, the policy allows {bound} s"
    return max(current, bound), (text,)


class _Upload(NamedTuple):
    """An upload at the end, and its rate."""

    what: str
    bytes: int
    rate: int

    @property
    def seconds(self) -> int:
        return -(-self.bytes // self.rate)

    def __str__(self) -> str:
        return f"{format_bytes(self.bytes)} of {self.what} at {format_bytes(self.rate)}/s"


def _last_uploads(spec: FerrySpec, policy: Policy) -> list[_Upload]:
    """What may still have to be uploaded when the pod is deleted, in sequence.

    Two checkpoints: one whose upload has just started, and one that the trainer completes before it ends, as
    many do on SIGTERM. More are pending only if uploads are always slower than saves; no grace solves that,
    and the drain uploads the newest first. All outputs: without an interval, none has been uploaded before.
    """
    rate, uploads = policy.defaults.upload_rate, []
    if spec.checkpoints and spec.checkpoints.size:
        limited = min(rate, spec.checkpoints.upload_limit or rate)
        uploads.append(_Upload("checkpoints", PENDING_CHECKPOINTS * spec.checkpoints.size, limited))
    if spec.outputs and spec.outputs.size:
        uploads.append(_Upload("outputs", spec.outputs.size, rate))
    return uploads


def drain_seconds(grace: int) -> int:
    """The agent's share of the grace, seconds."""
    return max(grace - MARGIN_SECONDS, 1)
