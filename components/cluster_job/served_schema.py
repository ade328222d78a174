"""The schema of a kind's spec, as the API server serves it, and values of the types that it asks for.

Every account may read it: Kubernetes' ClusterRole `system:discovery` includes `/openapi`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.job_kind import JobKind
from podferry.contract.errors import NotFound
from podferry.contract.workloads import map_at

INTEGER = re.compile(r"(-?\d+)(\.0)?")
BOOLEANS = {"true": True, "false": False}
Json = Mapping[str, Any]


def served_schema(api: ApiServer, kind: JobKind) -> Json:
    """The schema of a kind's spec.

    Raises:
        NotFound: The cluster does not serve the kind.
    """
    try:
        document = api.get(f"/openapi/v3/apis/{kind.api_version}")
    except NotFound:
        document = {}
    return spec_schema(document, kind)


def spec_schema(document: Json, kind: JobKind) -> Json:
    """The schema of a kind's spec in an OpenAPI v3 document of its group. Raises `NotFound`."""
    for schema in map_at(document, "components", "schemas").values():
        kinds = schema.get("x-kubernetes-group-version-kind") or []
        if any(one.get("kind") == kind.kind for one in kinds):
            return map_at(schema, "properties", "spec")
    what = f"the cluster does not serve {kind.kind} ({kind.api_version})"
    raise NotFound.of(what, remedy=f"Install {kind.product}")


def typed(value: Any, schema: Json) -> Any:
    """A value with numbers and booleans where its schema has them.

    In a mapping, KFP passes outputs of tasks and parameters of the pipeline as text, and an integer as 2.0.
    """
    if isinstance(value, Mapping):
        properties, others = map_at(schema, "properties"), map_at(schema, "additionalProperties")
        return {name: typed(one, properties.get(name, others)) for name, one in value.items()}
    if isinstance(value, list):
        return [typed(one, map_at(schema, "items")) for one in value]
    if isinstance(value, str):
        return _of_text(value, schema.get("type"))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _of_text(text: str, kind: Any) -> Any:
    number = INTEGER.fullmatch(text)
    if kind == "integer" and number:
        return int(number[1])
    return BOOLEANS.get(text.lower(), text) if kind == "boolean" else text
