"""Each kind of value: what it accepts, what its JSON Schema accepts, and that the two agree."""

from typing import Any

import jsonschema
import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy import policy_values as kinds
from podferry.webhook.policy.policy_values import PolicyValue, one_of

GIB = 1024**3
ANY = object()
WORDS = one_of(("gate", "deny"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (kinds.IMAGE_REFERENCE, " podferry:1 ", "podferry:1"),
        (kinds.IMAGE_REFERENCE, f"Registry.example:5000/a/b_c-d@sha256:{'0' * 64}", ANY),
        (kinds.BYTES, "10Gi", 10 * GIB),
        (kinds.BYTES, 4096, 4096),
        (kinds.SECONDS, "2m", 120),
        (kinds.CPU, "100m", "100m"),
        (kinds.CPU, 0.5, "0.5"),
        (kinds.PORT, 8471, 8471),
        (kinds.BOOL, False, False),
        (WORDS, "deny", "deny"),
        (kinds.PROXY, "http://proxy:3128", "http://proxy:3128"),
        (kinds.HOSTS, [".svc"], (".svc",)),
        (kinds.DATASETS, {"digits": "s3://datasets/digits"}, {"digits": "s3://datasets/digits"}),
        (
            kinds.ANNOTATIONS,
            {"podferry.io/dataset": "digits", "keep-local": 2},
            {"dataset": "digits", "keep-local": "2"},
        ),
        (
            kinds.LOCATIONS,
            ["s3://$(namespace)-data/*", "*", "s3*://*"],
            ("s3://$(namespace)-data/*", "*", "s3*://*"),
        ),
        (kinds.ENDPOINTS, ["https://store.example"], ("https://store.example",)),
        (kinds.RULE_NAME, "digits-1", "digits-1"),
    ],
)
def test_valid(kind: PolicyValue, value: Any, expected: Any) -> None:
    assert kind.parse(value) == expected or expected is ANY
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kinds.IMAGE_REFERENCE, 1),
        (kinds.IMAGE_REFERENCE, " "),
        (kinds.BYTES, True),
        (kinds.BYTES, ["10Gi"]),
        (kinds.SECONDS, None),
        (kinds.PORT, 80),
        (kinds.PORT, "8471"),
        (kinds.PORT, True),
        (kinds.BOOL, "true"),
        (WORDS, "denied"),
        (kinds.PROXY, "http://user:password@proxy:3128"),
        (kinds.HOSTS, ".svc"),
        (kinds.DATASETS, ["s3://datasets/digits"]),
        (kinds.ANNOTATIONS, {}),
        (kinds.ANNOTATIONS, {"dataset": None}),
        (kinds.LOCATIONS, "s3://datasets/*"),
        (kinds.RULE_NAME, "digits-"),
        (kinds.RULE_NAME, "d" * 41),
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
        (kinds.BYTES, "much"),
        (kinds.BYTES, "512m"),
        (kinds.IMAGE_REFERENCE, "registry.example/pod ferry:1"),
        (kinds.IMAGE_REFERENCE, "registry.example/Podferry:1"),
        (kinds.IMAGE_REFERENCE, "podferry@sha256:abc"),
        (kinds.CPU, "0"),
        (kinds.CA_BUNDLE, "no certificate"),
        (kinds.LOCATIONS, ["s3://results/$(namespace)*"]),
        (kinds.LOCATIONS, ["s3://results/$(job)/*"]),
        (kinds.LOCATIONS, ["s3://results/${namespace}/"]),
        (kinds.LOCATIONS, ["s3://results/{{ namespace }}/"]),
        (kinds.LOCATIONS, ["s3://results"]),
        (kinds.LOCATIONS, ["results/*"]),
        (kinds.ENDPOINTS, ["store.example"]),
        (kinds.DATASETS, {"digits": "datasets/digits"}),
    ],
)
def test_invalid_beyond_what_a_schema_says(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec):
        kind.parse(value)
    jsonschema.validate(value, kind.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kinds.IMAGE_REFERENCE, "registry.example/" + "a" * 512),
        (kinds.PROXY, "http://proxy.example/" + "a" * 2048),
        (kinds.HOSTS, [f"host-{at}.example" for at in range(600)]),
    ],
)
def test_what_goes_into_every_pod_is_short(kind: PolicyValue, value: Any) -> None:
    with pytest.raises(InvalidSpec, match="too long for every pod") as raised:
        kind.parse(value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("host", ["a,b", "a b", "a\nb"])
def test_a_host_is_one_host(host: str) -> None:
    with pytest.raises(InvalidSpec, match="not a host"):
        kinds.HOSTS.parse([host])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([host], kinds.HOSTS.schema)
