"""What the events of an object say, where its status says nothing: a volume, or a quota. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podferry.cache.report.pod_problem import PodProblem
from podferry.contract.errors import printable_text

Json = Mapping[str, Any]
REASONS = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "FailedCreate"}
"""Of pods that are scheduled and do not start, and of a StatefulSet that may not create them."""


def event_problem(events: Sequence[Json]) -> PodProblem | None:
    """What the newest event of an object says is wrong; None if it says that something has worked."""
    newest = max(events, key=_time, default=None)
    if newest is None or newest.get("reason") not in REASONS:
        return None
    text = " ".join(f"{newest['reason']}: {newest.get('message') or ''}".split())
    # Once is no failure: it is tried again, such as until the kubelet knows a Secret.
    return PodProblem(printable_text(text), has_failed=_count(newest) > 1)


def _time(event: Json) -> str:
    """When it was last seen, to the second: recorders of both generations write events."""
    series, metadata = event.get("series") or {}, event.get("metadata") or {}
    found = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, found), metadata.get("creationTimestamp") or ""))[:19]


def _count(event: Json) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)
