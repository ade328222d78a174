"""The pod templates of workloads, and the first pod that a workload makes of each. Pure.

A first pod has the labels, variables and owner that its controller would set, as far as podferry reads them
(`podferry.contract.pod_rank`, `podferry.contract.pod_owner`), so that its rank and lineage are known before
it exists. It is made of references to the template, which must not be changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.contract.workloads import PARTS, WORKLOADS, Path, Place, Rule, map_at, value_at

ANY = "*"
"""Every member of a map or a list."""


class PodTemplate(msgspec.Struct, frozen=True):
    """One pod template of a workload.

    Attributes:
        path: Where it is: `spec.pytorchReplicaSpecs.Worker.template`.
        steps: The keys and indexes that lead to it.
        pod: The first pod made of it, without a namespace.
        pods: How many pods are made of it, None if that is unknown.
        complete: Whether it is a whole template; else annotations that are merged into another object's.
    """

    path: str
    steps: Path
    pod: dict[str, Any]
    pods: int | None = None
    complete: bool = True


def pod_templates_of(workload: Any) -> list[PodTemplate]:
    """The templates of a workload of a known kind, in their order; none of any other object.

    Members of other types than expected count as absent.
    """
    version, kind = (str(value_at(workload, (key,)) or "") for key in ("apiVersion", "kind"))
    known = WORKLOADS.get((version.partition("/")[0], kind))
    if known is None:
        return []
    rule, patterns = known
    found = ((pattern, steps) for pattern in patterns for steps in _matches(workload, pattern.split("."), ()))
    return [_template(Place(workload, steps), rule, pattern) for pattern, steps in found]


def _matches(node: Any, pattern: list[str], steps: Path) -> Iterator[Path]:
    """The paths of the objects under a pattern."""
    if not pattern:
        if isinstance(node, Mapping):
            yield steps
        return
    head, *rest = pattern
    if head != ANY:
        if isinstance(node, Mapping) and head in node:
            yield from _matches(node[head], rest, (*steps, head))
        return
    members = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for step, child in members:
        yield from _matches(child, rest, (*steps, str(step)))


def _template(place: Place, rule: Rule, pattern: str) -> PodTemplate:
    first, metadata = rule(place), map_at(place.workload, *place.steps, "metadata")
    spec, (kind, version, name) = map_at(place.workload, *place.steps, "spec"), first.owner
    owner = {"apiVersion": version, "kind": kind, "name": name, "controller": True}
    owners = map_at(place.workload, "metadata").get("ownerReferences") or [owner]
    labels = {**map_at(metadata, "labels"), **first.labels}
    pod = {
        "metadata": {**metadata, "ownerReferences": owners, "labels": labels},
        "spec": {**spec, "containers": _with_variables(spec.get("containers"), first.variables)},
    }
    return PodTemplate(_readable(place), place.steps, pod, first.pods, pattern not in PARTS)


def _with_variables(containers: Any, variables: Mapping[str, str]) -> Any:
    if not variables or not isinstance(containers, list):
        return containers or []
    added = [{"name": name, "value": text} for name, text in variables.items()]
    return [
        {**one, "env": [*_list(one.get("env")), *added]} if isinstance(one, Mapping) else one
        for one in containers
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _readable(place: Place) -> str:
    """The path, with the names of list members instead of their indexes."""
    text, node = "", place.workload
    for step in place.steps:
        node = value_at(node, (step,))
        named = step.isdecimal() and isinstance(node, Mapping)
        label = (node.get("name") or node.get("groupName") or step) if named else step
        text += f"[{label}]" if named else f".{step}"
    return text.removeprefix(".")
