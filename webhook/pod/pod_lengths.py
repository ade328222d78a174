"""Limits of Kubernetes and Linux on what podferry adds to a pod."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.contract.errors import Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX
from podferry.webhook.pod.pod_json import Json, annotations_of

MAX_SPEC_BYTES = 96 * 1024
"""The agent gets the spec in a variable, of which Linux allows 128 KiB. Source: execve(2), MAX_ARG_STRLEN."""
MAX_ANNOTATION_BYTES = 256 * 1024
"""All keys and values of an object. Source: Kubernetes, `TotalAnnotationSizeLimitB`."""
STAMP_BYTES = 1024
"""Room for the stamps without the spec."""
REMEDY = "Use fewer and shorter annotations: globs instead of names, a manifest instead of a list of files"


def length_problems(pod: Json, size: int) -> Iterator[Problem]:
    """Why the pod, or its agent, could not be started with a spec of `size` bytes."""
    if size > MAX_SPEC_BYTES:
        measured = f"{format_bytes(size)} when they are resolved; at most {format_bytes(MAX_SPEC_BYTES)}"
        yield Problem(
            f"the pod's {PREFIX} annotations are too long for a variable of the agent", measured, REMEDY
        )
    elif not has_room_for_stamps(pod, size):
        total, limit = format_bytes(_annotation_bytes(pod)), format_bytes(MAX_ANNOTATION_BYTES)
        what = "podferry's stamps do not fit into the pod's annotations"
        yield Problem(
            what, f"{total}, and {format_bytes(size + STAMP_BYTES)} to add; at most {limit}", REMEDY
        )


def has_room_for_stamps(pod: Json, spec_bytes: int = 0) -> bool:
    """Whether stamps, with a spec of this length, can be added to the pod's annotations."""
    return _annotation_bytes(pod) + spec_bytes + STAMP_BYTES <= MAX_ANNOTATION_BYTES


def _annotation_bytes(pod: Json) -> int:
    found = annotations_of(pod)
    return len("".join([*found, *found.values()]).encode(errors="surrogatepass"))
