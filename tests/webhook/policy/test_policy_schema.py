"""The published schema is generated from the keys, and agrees with the parser on real policies."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_schema import policy_schema
from podferry.webhook.policy.policy_yaml import read_policy

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "deploy" / "policy.schema.json"
HEAD = {"apiVersion": "podferry.io/v1alpha1", "kind": "InjectionPolicy", "image": "podferry:1"}
RULE = {"name": "a", "match": {"gpus": 1}, "annotations": {"dataset": "s3://d"}}
POLICIES = [
    *sorted((ROOT / "tests" / "webhook" / "golden").glob("*/policy.yaml")),
    *sorted((ROOT / "deploy").rglob("policy.yaml")),
    ROOT / "tests" / "e2e" / "overlay" / "policy.yaml",
]


def test_the_published_schema_is_the_codes() -> None:
    assert json.loads(PUBLISHED.read_text()) == policy_schema(), (
        f"write it: podferry policy schema > {PUBLISHED.relative_to(ROOT)}"
    )


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_policies_of_the_project_are_valid(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    held = [one["data"]["policy.yaml"] for one in documents if "policy.yaml" in one.get("data", {})]
    (document,) = map(yaml.safe_load, held) if held else documents
    jsonschema.validate(document, policy_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"imag": "x"},
        {"image": ""},
        {"kind": "Policy"},
        {"defaults": []},
        {"defaults": {"shmsize": "1Gi"}},
        {"agentPort": 80},
        {"enforcement": "off"},
        {"rules": RULE},
        {"rules": [{**RULE, "name": "A"}]},
        {"rules": [{"name": "a", "match": {}}]},
        {"rules": [{**RULE, "match": {"label": {}}}]},
        {"guardrails": [{"match": {"namespaces": "team"}, "allowed": {}}]},
    ],
)
def test_both_reject(change: dict[str, Any]) -> None:
    document = {**HEAD, **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, policy_schema())
    with pytest.raises(InvalidSpec):
        read_policy(yaml.safe_dump(document))


def test_both_require_the_same() -> None:
    for name in HEAD:
        document = {key: value for key, value in HEAD.items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, policy_schema())
        with pytest.raises(InvalidSpec):
            read_policy(yaml.safe_dump(document))
