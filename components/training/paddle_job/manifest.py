"""The spec of a PaddleJob whose pods have annotations. Pure.

Source: paddle-operator, `api/v1/paddlejob_types.go`: each role has `replicas` and a pod template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podferry.components.cluster_job.served_schema import typed
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.workloads import map_at, value_at

ROLES = ("worker", "ps")
Json = Mapping[str, Any]


def paddle_job_spec(
    schema: Json, worker: Json, servers: Json, more: Json, annotations: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """The spec of a PaddleJob.

    Args:
        schema: Of a PaddleJob's spec, as served.
        worker: `spec.worker`: `replicas` and `template`.
        servers: `spec.ps`, or empty for a collective training.
        more: Other members of the spec.
        annotations: Of the pods, by role: `worker`, `ps`.

    Raises:
        InvalidSpec: What is missing in a role, for all of them.
    """
    spec: dict[str, Any] = typed({**more, "worker": worker, **({"ps": servers} if servers else {})}, schema)
    roles = {name: spec[name] for name in ROLES if name in spec}
    InvalidSpec.raise_any(problem for name, role in roles.items() for problem in _problems(name, role))
    return spec | {name: _annotated(role, annotations.get(name, {})) for name, role in roles.items()}


def _annotated(role: Json, annotations: Mapping[str, str]) -> dict[str, Any]:
    template = map_at(role, "template")
    metadata = map_at(template, "metadata")
    both = {**map_at(metadata, "annotations"), **annotations}
    return {**role, "template": {**template, "metadata": {**metadata, "annotations": both}}}


def _problems(name: str, role: Json) -> Iterator[Problem]:
    replicas = role.get("replicas")
    if not isinstance(replicas, int) or replicas < 1:
        yield Problem(f"{name}.replicas: not an integer of 1 or more", repr(replicas), "Write 1 or more")
    if not value_at(role, ("template", "spec", "containers")):
        what = f"{name}.template.spec.containers: there is none"
        yield Problem(what, "", "Write the container with its image and command")
