"""How long a pod may take to end: its last checkpoint is on its way then."""

from __future__ import annotations

from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.webhook.pod import Json, spec_of
from podferry.webhook.policy import Policy

KUBERNETES_DEFAULT = 30
"""Seconds, where a pod says nothing. Source: Kubernetes API, `terminationGracePeriodSeconds`."""
TRAINER_ENDS = 15
"""Seconds for the trainer to end in: only then the agent is told to."""
MARGIN = 5
"""Seconds between the agent's own deadline and the kubelet's: for its last words."""


def own_grace(pod: Json) -> int:
    """What the pod has by itself, seconds."""
    has = spec_of(pod).get("terminationGracePeriodSeconds")
    return KUBERNETES_DEFAULT if has is None else int(has)


def grace_of(pod: Json, spec: FerrySpec, policy: Policy) -> tuple[int, tuple[str, ...]]:
    """The pod's grace in seconds, never less than it has, and warnings.

    One checkpoint at the policy's upload rate, after the trainer's own end; what `podferry.io/grace` says
    goes before. Both stay within the policy's bound, which a pod's own value may be above.
    """
    own = own_grace(pod)
    if spec.grace is None and spec.checkpoints is None:
        return own, ()
    size = spec.checkpoints.size or 0 if spec.checkpoints else 0
    rate = policy.defaults.upload_rate
    computed = max(policy.defaults.grace, TRAINER_ENDS + -(-size // rate))
    wished = spec.grace if spec.grace is not None else computed
    bound = policy.bounds.grace
    if wished <= bound:
        return max(own, wished), ()
    reason = (
        f"{PREFIX}grace"
        if spec.grace is not None
        else f"{format_bytes(size)} at {format_bytes(rate)} a second"
    )
    text = f"grace is {max(own, bound)} s: {reason} asks for {wished} s, the policy allows {bound} s"
    return max(own, bound), (text,)


def drain_seconds(grace: int) -> int:
    """What of it the agent may take."""
    return max(grace - MARGIN, 1)
