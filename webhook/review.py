"""AdmissionReview, version 1: bytes ↔ values.

Source: Kubernetes API `admission.k8s.io/v1`. What the object holds stays plain JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
UNPROCESSABLE = 422
MAX_WARNING_BYTES = 256
"""Characters. Longer warnings may be cut by clients. Source: `AdmissionResponse.warnings`."""
ELLIPSIS = "…"


class GroupVersionKind(msgspec.Struct, frozen=True):
    """What kind of object is under review."""

    kind: str = ""
    group: str = ""
    version: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """What is asked.

    Attributes:
        uid: Has to stand in the answer.
        kind: Of the object.
        operation: `CREATE` and so on.
        namespace: Where; empty for cluster-wide objects.
        name: The object's, empty where the API server will make one up.
        object: The new object, plain JSON.
        dry_run: Nothing will be stored.
    """

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    operation: str = ""
    namespace: str = ""
    name: str = ""
    object: dict[str, Any] | None = None
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: AdmissionRequest


def decode_review(body: bytes) -> AdmissionRequest:
    """The request in a review.

    Raises:
        InvalidSpec: The body is no AdmissionReview of version 1.
    """
    try:
        review = msgspec.json.decode(body, type=_Review)
    except msgspec.MsgspecError as error:
        raise InvalidSpec.of("the body is no AdmissionReview", str(error)) from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        measured = f"{review.api_version} {review.kind}"
        raise InvalidSpec.of("the body is no AdmissionReview of this version", measured)
    return review.request


def allow(uid: str, patch: Sequence[dict[str, Any]] = (), warnings: Sequence[str] = ()) -> bytes:
    """The answer that lets the object in, patched."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _answer(response, warnings)


def deny(uid: str, message: str, warnings: Sequence[str] = ()) -> bytes:
    """The answer that keeps the object out; its author reads the message."""
    status = {"code": UNPROCESSABLE, "reason": "Invalid", "message": message}
    return _answer({"uid": uid, "allowed": False, "status": status}, warnings)


def _answer(response: dict[str, Any], warnings: Sequence[str]) -> bytes:
    if warnings:
        response["warnings"] = [_short(warning) for warning in warnings]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WARNING_BYTES else line[: MAX_WARNING_BYTES - 1] + ELLIPSIS
