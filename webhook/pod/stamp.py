"""Stamps: annotations that record what podferry did to a pod, signed so that nobody else can write them.

The API server calls again after another webhook has changed the pod. A stamp signed a moment ago for this pod
proves that the earlier call injected it, whatever the policy says by now. A forged stamp proves nothing, nor
does that of another pod, of which this one is a copy, or an old one of the same pod.
"""

from __future__ import annotations

import hmac
from typing import Any

import msgspec

from podferry.contract.annotation_keys import STAMPS
from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_binding import REMEDY as DEBUG_REMEDY
from podferry.contract.spec import PREFIX
from podferry.webhook.pod.pod_json import GATE, SIDECAR, Json, all_containers_of, annotations_of

STATUS_STAMP, SPEC_STAMP, POLICY_HASH_STAMP = f"{PREFIX}status", f"{PREFIX}spec", f"{PREFIX}policy-hash"
SIGNATURE_STAMP = f"{PREFIX}signature"
INJECTED, REFUSED, SHARED = "injected", "refused", "shared"
FORMAT, UNSIGNED_MARK = "v1", "unsigned"
VALID_SECONDS = 120
"""How long a signature proves an earlier call of the same request. Kubernetes limits a request to 60 s unless
configured otherwise (kube-apiserver, `--request-timeout`); the rest is for clocks that differ."""
CLOCK_SKEW = 60
"""Seconds by which another replica's clock may be ahead."""
REMEDY = (
    "Create it from the manifest that it was made from; or remove podferry's containers, volumes, mounts and "
    + ", ".join(sorted(PREFIX + name for name in STAMPS))
)
COPY_REMEDY = f"{REMEDY}. {DEBUG_REMEDY}"


class Signer(msgspec.Struct, frozen=True):
    """Signs stamps at a moment, and verifies them.

    Attributes:
        keys: The first one signs, all of them verify. Without keys, outside a cluster, stamps are marked as
            unsigned.
        now: The moment, Unix seconds.
    """

    keys: tuple[bytes, ...] = ()
    now: int = 0

    def sign(self, pod: Json, namespace: str) -> str:
        """The signature of a pod that has all its other stamps."""
        return _mac(self.keys[0], self.now, pod, namespace) if self.keys else UNSIGNED_MARK

    def verify(self, pod: Json, namespace: str) -> None:
        """Raises `InvalidSpec` unless an earlier call of this request signed the stamps for this pod."""
        signature = annotations_of(pod).get(SIGNATURE_STAMP, "")
        if not self.keys and signature == UNSIGNED_MARK:
            return
        signed_at = _time_of(signature)
        if signed_at is None:
            what = "podferry's containers or stamps in the pod are not from this cluster's webhook"
            raise InvalidSpec.of(what, f"{SIGNATURE_STAMP}: {signature[:40] or 'none'}", REMEDY)
        expected = (_mac(key, signed_at, pod, namespace) for key in self.keys)
        if not any(hmac.compare_digest(one.encode(), signature.encode()) for one in expected):
            what = "podferry's stamps are not for this pod: it is a copy of another one, or has been changed"
            raise InvalidSpec.of(
                what, f"{SIGNATURE_STAMP} is not that of {namespace}/{_name(pod)}", COPY_REMEDY
            )
        age = self.now - signed_at
        if not -CLOCK_SKEW <= age <= VALID_SECONDS:
            what = "the pod is a copy of one that podferry's webhook injected earlier"
            raise InvalidSpec.of(what, f"{age} s ago", COPY_REMEDY)


UNSIGNED = Signer()
"""For use outside a cluster."""


def _time_of(signature: str) -> int | None:
    """When it claims to be made, or None if it is none."""
    version, _, rest = signature.partition(":")
    seconds, _, mac = rest.partition(":")
    readable = version == FORMAT and mac and seconds.isascii() and seconds.isdecimal() and len(seconds) < 16
    return int(seconds) if readable else None


def _mac(key: bytes, signed_at: int, pod: Json, namespace: str) -> str:
    content = msgspec.json.encode([FORMAT, signed_at, namespace, *_content(pod)], order="sorted")
    mac = hmac.digest(key, content, "sha256").hex()
    return f"{FORMAT}:{signed_at}:{mac}"


def _content(pod: Json) -> list[Any]:
    """What a copy or a forgery would change: who the pod is, its settings, what podferry's containers run.

    Other webhooks may change their images, resources and mounts.
    """
    ours = {name: text for name, text in annotations_of(pod).items() if name.startswith(PREFIX)}
    ours.pop(SIGNATURE_STAMP, None)
    programs = [_program(one) for one in all_containers_of(pod) if one.get("name") in {SIDECAR, GATE}]
    return [_owner(pod), _name(pod), ours, programs]


def _name(pod: Json) -> str:
    """Its name, or the prefix from which the API server makes it after admission."""
    metadata = pod.get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or ""


def _owner(pod: Json) -> str:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or []
    return next((one.get("uid", "") for one in owners if one.get("controller")), "")


def _program(container: Json) -> list[Any]:
    """Name, command line and podferry's variables, without what the API server fills in."""
    variables = [
        [
            one["name"],
            one.get("value") or "",
            ((one.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", ""),
        ]
        for one in container.get("env") or []
        if one["name"].startswith("PODFERRY_")
    ]
    return [container.get("name"), container.get("command") or [], container.get("args") or [], variables]
