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
    CPU,
    DATASETS,
    ENDPOINTS,
    HOSTS,
    IMAGE_REFERENCE,
    LOCATIONS,
    PORT,
    PROXY,
    RULE_NAME,
    SECONDS,
    PolicyValue,
    one_of,
)

GIB = 1024**3
ANY = object()
WORDS = one_of(("gate", "deny"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (IMAGE_REFERENCE, " podferry:1 ", "podferry:1"),
        (IMAGE_REFERENCE, f"Registry.example:5000/a/b_c-d@sha256:{'0' * 64}", ANY),
        (BYTES, "10Gi", 10 * GIB),
        (BYTES, 1024, 1024),
        (SECONDS, "2m", 120),
        (CPU, "100m", "100m"),
        (CPU, 0.5, "0.5"),
        (PORT, 8471, 8471),
        (BOOL, False, False),
        (WORDS, "deny", "deny"),
        (PROXY, "http://proxy:3128", "http://proxy:3128"),
        (HOSTS, [".svc"], (".svc",)),
        (DATASETS, {"digits": "s3://datasets/digits"}, {"digits": "s3://datasets/digits"}),
        (
            ANNOTATIONS,
            {"podferry.io/dataset": "digits", "keep-local": 2},
            {"dataset": "digits", "keep-local": "2"},
        ),
        (LOCATIONS, ["s3://$(namespace)-data/*", "*", "s3*"], ("s3://$(namespace)-data/*", "*", "s3*")),
        (ENDPOINTS, ["https://store.example"], ("https://store.example",)),
        (RULE_NAME, "digits-1", "digits-1"),
    ],
)
def test_valid(kind: PolicyValue, value: Any, expected: Any) -> None:
    assert kind.parse(value) == expected or expected is ANY
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IMAGE_REFERENCE, 1),
        (IMAGE_REFERENCE, " "),
        (BYTES, True),
        (BYTES, ["10Gi"]),
        (SECONDS, None),
        (PORT, 80),
        (PORT, "8471"),
        (PORT, True),
        (BOOL, "true"),
        (WORDS, "denied"),
        (PROXY, "http://user:password@proxy:3128"),
        (HOSTS, ".svc"),
        (DATASETS, ["s3://datasets/digits"]),
        (ANNOTATIONS, {}),
        (ANNOTATIONS, {"dataset": None}),
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
        (BYTES, "512m"),
        (IMAGE_REFERENCE, "registry.example/pod ferry:1"),
        (IMAGE_REFERENCE, "registry.example/Podferry:1"),
        (IMAGE_REFERENCE, "podferry@sha256:abc"),
        (CPU, "0"),
        (CA_BUNDLE, "no certificate"),
        (LOCATIONS, ["s3://results/$(namespace)*"]),
        (LOCATIONS, ["s3://results/$(job)/*"]),
        (LOCATIONS, ["s3://results/${namespace}/"]),
        (LOCATIONS, ["s3://results/{{ namespace }}/"]),
        (LOCATIONS, ["s3://results"]),
        (LOCATIONS, ["results/*"]),
        (ENDPOINTS, ["store.example"]),
        (DATASETS, {"digits": "datasets/digits"}),
    ],
)
def test_invalid_beyond_what_a_schema_says(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec):
        kind.parse(value)
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IMAGE_REFERENCE, "registry.example/" + "a" * 512),
        (PROXY, "http://proxy.example/" + "a" * 2048),
        (HOSTS, [f"host-{at}.example" for at in range(600)]),
    ],
)
def test_what_goes_into_every_pod_is_short(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec, match="too long for every pod") as raised:
        kind.parse(value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("host", ["a,b", "a b", "a\nb"])
def test_a_host_is_one_host(host: str) -> None:
    with pytest.raises(InvalidSpec, match="not a host"):
        HOSTS.parse([host])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([host], HOSTS.schema)
