"""Codec of AdmissionReview v1.

Source: Kubernetes API `admission.k8s.io/v1`. The object under review stays plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
UNPROCESSABLE = 422
MAX_OBJECTS = 250_000
"""Objects and arrays in a review: each may take 230 bytes when it is decoded. A pod of 3 MiB has fewer than
50,000."""
MAX_WARNING_LENGTH = 256
"""Characters. Clients may truncate longer warnings. Source: `AdmissionResponse.warnings`."""
ELLIPSIS = "…"


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The kind of the object under review."""

    kind: str = ""
    group: str = ""
    version: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The request of a review.

    Attributes:
        uid: Must be repeated in the response.
        kind: Of the object.
        operation: `CREATE` and so on.
        namespace: Of the object; empty for cluster-wide objects.
        name: Of the object; empty if the API server will generate it.
        object: The new object, plain JSON.
        dry_run: Whether nothing will be stored.
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
    """The request in a review; of a key that is there twice, the last value counts, as for the API server.

    Raises:
        InvalidSpec: The body is not an AdmissionReview of version 1, or an absurd one.
    """
    # A shorter body cannot have as many, and counting would take longer than decoding its types.
    objects = body.count(b"{") + body.count(b"[") if len(body) > MAX_OBJECTS else 0
    if objects > MAX_OBJECTS:
        raise InvalidSpec.of(
            "the review has too many objects and arrays", f"{objects}; at most {MAX_OBJECTS}"
        )
    try:
        review = msgspec.json.decode(body, type=_Review)
    except msgspec.MsgspecError as error:
        raise InvalidSpec.of("the body is not an AdmissionReview", str(error)) from error
    except UnicodeDecodeError as error:
        raise InvalidSpec.of("the body is not UTF-8", error.reason) from error
    except RecursionError as error:
        raise InvalidSpec.of("objects and arrays are nested too deeply in the review") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        measured = f"{review.api_version} {review.kind}"
        raise InvalidSpec.of("the body is not an AdmissionReview of this version", measured)
    return review.request


def allow(uid: str, patch: Sequence[dict[str, Any]] = (), warnings: Sequence[str] = ()) -> bytes:
    """The response that admits the object, patched."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = msgspec.json.encode(patch)  # as bytes, which become base64
    return _response(response, warnings)


def deny(uid: str, message: str, warnings: Sequence[str] = ()) -> bytes:
    """The response that rejects the object; its author reads the message."""
    status = {"code": UNPROCESSABLE, "reason": "Invalid", "message": message}
    return _response({"uid": uid, "allowed": False, "status": status}, warnings)


def _response(response: dict[str, Any], warnings: Sequence[str]) -> bytes:
    if warnings:
        response["warnings"] = [_truncated(warning) for warning in warnings]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _truncated(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WARNING_LENGTH else line[: MAX_WARNING_LENGTH - 1] + ELLIPSIS
