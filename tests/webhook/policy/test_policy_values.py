"""Each kind of value: what it accepts, what its JSON Schema accepts, and that the two agree."""

from typing import Any

import jsonschema
import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_values import (
    ANNOTATIONS,
    BOOL,
    BYTES,
    CA_BUNDLE,
    COUNT,
    CPU,
    DATASETS,
    HOSTS,
    LABELS,
    LOCATIONS,
    NAMESPACES,
    PORT,
    PROXY,
    RULE_NAME,
    SECONDS,
    TEXT,
    PolicyValue,
    one_of,
)

GIB = 1024**3
WORDS = one_of(("gate", "deny"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (TEXT, " podferry:1 ", "podferry:1"),
        (BYTES, "10Gi", 10 * GIB),
        (BYTES, 1024, 1024),
        (SECONDS, "2m", 120),
        (CPU, "100m", "100m"),
        (CPU, 0.5, "0.5"),
        (PORT, 8471, 8471),
        (COUNT, 1, 1),
        (BOOL, False, False),
        (WORDS, "deny", "deny"),
        (PROXY, "http://proxy:3128", "http://proxy:3128"),
        (HOSTS, [".svc"], (".svc",)),
        (DATASETS, {"digits": "s3://datasets/digits"}, {"digits": "s3://datasets/digits"}),
        (LABELS, {"tier": "training"}, {"tier": "training"}),
        (
            ANNOTATIONS,
            {"podferry.io/dataset": "digits", "keep-local": 2},
            {"dataset": "digits", "keep-local": "2"},
        ),
        (NAMESPACES, ["team-*", "prod"], ("team-*", "prod")),
        (LOCATIONS, ["s3://$(namespace)-data/*"], ("s3://$(namespace)-data/*",)),
        (RULE_NAME, "digits-1", "digits-1"),
    ],
)
def test_valid(kind: PolicyValue, value: Any, expected: Any) -> None:
    assert kind.parse(value) == expected
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TEXT, 1),
        (TEXT, " "),
        (BYTES, True),
        (BYTES, ["10Gi"]),
        (SECONDS, None),
        (PORT, 80),
        (PORT, "8471"),
        (PORT, True),
        (COUNT, 0),
        (COUNT, 1.5),
        (BOOL, "true"),
        (WORDS, "denied"),
        (PROXY, "http://user:password@proxy:3128"),
        (HOSTS, ".svc"),
        (DATASETS, ["s3://datasets/digits"]),
        (LABELS, {"tier": 1}),
        (ANNOTATIONS, {}),
        (ANNOTATIONS, {"dataset": None}),
        (NAMESPACES, ["Team"]),
        (NAMESPACES, [""]),
        (LOCATIONS, "s3://datasets/*"),
        (RULE_NAME, "digits-"),
        (RULE_NAME, "d" * 41),
    ],
)
def test_invalid_for_the_parser_and_for_the_schema(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec):
        kind.parse(value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (BYTES, "much"),
        (CPU, "0"),
        (CA_BUNDLE, "no certificate"),
        (LOCATIONS, ["s3://results/$(namespace)*"]),
        (LOCATIONS, ["s3://results/$(job)/*"]),
        (DATASETS, {"digits": "datasets/digits"}),
    ],
)
def test_invalid_beyond_what_a_schema_says(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec):
        kind.parse(value)
    jsonschema.validate(value, kind.schema)
