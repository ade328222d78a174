"""Keeps the trainer's memory raised if a later webhook sets it again, as a Vertical Pod Autoscaler does.

Its recommendation knows nothing of the files that the trainer is about to write to memory.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import PREFIX
from podferry.webhook.pod.json_patch import Draft, Path, find
from podferry.webhook.pod.pod_json import Json, annotations_of, container_index, containers_of

MEMORY_STAMP = f"{PREFIX}trainer-memory"
"""Annotation with the raised amounts; signed like the other stamps."""


class RaisedMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of a container after it was raised, as quantities; None for what it does not set."""

    container: str
    limits: str | None = None
    requests: str | None = None


def record_raised_memory(draft: Draft, before: Json, index: int) -> None:
    """Stamp the pod with the memory of the container at `index`, unless that is as `before`."""
    container = containers_of(draft.document)[index]
    if _memory(container) == _memory(before):
        return
    record = RaisedMemory(container["name"], **_memory(container))
    draft.set(("metadata", "annotations", MEMORY_STAMP), msgspec.json.encode(record).decode())


def restore_raised_memory(draft: Draft) -> None:
    """Raise the memory of a stamped pod again where another webhook has lowered it."""
    text = annotations_of(draft.document).get(MEMORY_STAMP)
    if text is None:
        return
    record = msgspec.json.decode(text, type=RaisedMemory)
    index = container_index(containers_of(draft.document), record.container)
    if index is None:
        return
    for kind, least in (("limits", record.limits), ("requests", record.requests)):
        path: Path = ("spec", "containers", index, "resources", kind, "memory")
        found = find(draft.document, path)
        if least is not None and found is not None and parse_bytes(str(found)) < parse_bytes(least):
            draft.set(path, least)


def _memory(container: Json) -> dict[str, Any]:
    found = {kind: find(container, ("resources", kind, "memory")) for kind in ("limits", "requests")}
    return {kind: str(amount) for kind, amount in found.items() if amount is not None}
