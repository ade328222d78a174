"""The JSON Schema of the injection policy, generated from its keys.

`deploy/policy.schema.json` is this schema, for editors and for checks in pipelines. What it accepts may still
be wrong: values that only parsers understand, such as quantities and URIs, and conflicts between settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podferry.webhook.policy.policy_table import ListOf, Table
from podferry.webhook.policy.policy_values import PolicyValue
from podferry.webhook.policy.policy_yaml import API_VERSION, KIND, POLICY_KEYS, REQUIRED_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> dict[str, Any]:
    """The schema of a complete policy."""
    return {
        "$schema": DIALECT,
        "title": f"{KIND} {API_VERSION}",
        **_object(POLICY_KEYS, REQUIRED_KEYS),
    }


def _object(table: Table, required: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _schema(kind) for name, kind in table.items()},
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


def _schema(kind: PolicyValue | ListOf | Table) -> dict[str, Any]:
    if isinstance(kind, PolicyValue):
        return dict(kind.schema)
    if isinstance(kind, Mapping):
        return _object(kind)
    return {"type": "array", "items": _object(kind.table, kind.required)}
