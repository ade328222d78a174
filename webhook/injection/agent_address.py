"""Where a pod's agent listens: on loopback, which the pod's containers share.

Pods on the node's network share the node's loopback with each other. Linux has all of 127.0.0.0/8 there, so
each of them gets an address of its own, and no gate takes another pod's agent for its own.
"""

from __future__ import annotations

import hashlib

from podferry.webhook.pod.pod_json import Json, spec_of

LOOPBACK = "127.0.0.1"


def agent_host(pod: Json, request: str) -> str:
    """The address of a pod's agent.

    Args:
        pod: The pod.
        request: Of the admission, unique. Pods of one controller differ in nothing else before they have a
            name, so an address of 24 bits is made from it.
    """
    if not spec_of(pod).get("hostNetwork"):
        return LOOPBACK
    metadata = pod.get("metadata") or {}
    seed = "\0".join([metadata.get("namespace") or "", metadata.get("name") or "", request])
    first, second, third = hashlib.sha256(seed.encode()).digest()[:3]
    # 127.0.* and the ends of networks are used by others, such as 127.0.0.53 of systemd-resolved.
    return f"127.{1 + first % 254}.{second}.{1 + third % 254}"
