"""What of a pod is not podferry's: injecting must not change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podferry.contract.annotation_keys import KEYS, STAMPS
from podferry.contract.spec import PREFIX
from podferry.webhook.pod.json_patch import apply, pointer

Operation = Mapping[str, Any]
RAISED = ("/memory", "/cpu", "/terminationGracePeriodSeconds")
"""Ends of the paths that podferry may change in a pod."""


def changes_of_others(pod: Mapping[str, Any], patch: Sequence[Operation]) -> list[str]:
    """The paths at which a patch changes what is not podferry's, other than as documented."""
    own = (pod.get("metadata") or {}).get("annotations") or {}
    ruled = {pointer(("metadata", "annotations", PREFIX + name)) for name in KEYS if PREFIX + name not in own}
    kept = [one for one in patch if not one["path"].endswith(RAISED) and one["path"] not in ruled]
    replaced = [one["path"] for one in kept if one["op"] == "replace" and one["value"] not in ([], {})]
    if without_ours(apply(pod, kept)) != without_ours(pod):
        return [*replaced, "the rest of the pod"]
    return [path for path in replaced if not path.startswith("/metadata/annotations/podferry.io~1")]


def without_ours(value: Any) -> Any:
    """The document without podferry's stamps, containers, volumes, mounts, variables, and what is empty."""
    if isinstance(value, dict):
        kept = {key: without_ours(item) for key, item in value.items() if key not in _stamps()}
        return {key: item for key, item in kept.items() if item not in (None, [], {})}
    if isinstance(value, list):
        return [without_ours(item) for item in value if not _is_ours(item)]
    return value


def _stamps() -> Iterable[str]:
    return {PREFIX + name for name in STAMPS}


def _is_ours(item: Any) -> bool:
    name = item.get("name", "") if isinstance(item, dict) else ""
    return isinstance(name, str) and name.startswith(("podferry", "PODFERRY_"))
