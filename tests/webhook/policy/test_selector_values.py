"""What may be written under `match`, for the parser and for the JSON Schema alike."""

from typing import Any

import jsonschema
import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_values import PolicyValue
from podferry.webhook.policy.selector_values import COUNT, LABELS, NAMESPACES, OWNERS


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (NAMESPACES, ["team-*", "prod"], ("team-*", "prod")),
        (LABELS, {"example.com/tier": "training"}, {"example.com/tier": "training"}),
        (LABELS, {"spot": ""}, {"spot": ""}),
        (OWNERS, ["Job", "pytorchjob"], ("Job", "pytorchjob")),
        (COUNT, 1, 1),
    ],
)
def test_valid(kind: PolicyValue, value: Any, expected: Any) -> None:
    assert kind.parse(value) == expected
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NAMESPACES, []),
        (NAMESPACES, ["Team"]),
        (NAMESPACES, [""]),
        (LABELS, {}),
        (LABELS, {"tier": 1}),
        (LABELS, {"tier": "*"}),
        (LABELS, {"tier": "a in (b)"}),
        (LABELS, {"the tier": "training"}),
        (LABELS, {"tier": "t" * 64}),
        (OWNERS, []),
        (OWNERS, ["*"]),
        (COUNT, 0),
        (COUNT, 1.5),
    ],
)
def test_invalid_for_the_parser_and_for_the_schema(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec):
        kind.parse(value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(("kind", "direct"), [("CronJob", "Job"), ("Notebook", "StatefulSet")])
def test_owners_that_no_pod_names(kind: str, direct: str) -> None:
    with pytest.raises(InvalidSpec, match=f"Write {direct}"):
        OWNERS.parse([kind])
