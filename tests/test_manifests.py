"""The manifests match the code: resources, prefix, ports, commands, policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.cli import webhook
from podferry.contract.spec import PREFIX
from podferry.webhook.policy_yaml import read_policy

DEPLOY = Path(__file__).parents[1] / "deploy"
BASE = DEPLOY / "base"
Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@pytest.fixture(scope="module")
def resources() -> dict[tuple[str, str], Object]:
    """All objects of the base, by kind and name."""
    files = [path for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml"]
    found = [document for path in files for document in documents(path)]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_every_file_is_listed_once() -> None:
    (listed,) = documents(BASE / "kustomization.yaml")
    assert sorted(listed["resources"]) == sorted(
        path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_the_policy_is_one(resources: dict[tuple[str, str], Object]) -> None:
    text = resources["ConfigMap", "podferry-policy"]["data"]["policy.yaml"]
    assert read_policy(text).image.startswith("podferry:")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("MutatingWebhookConfiguration", "podferry"), ("ValidatingAdmissionPolicy", "podferry-injected")],
)
def test_opting_in_uses_our_prefix(resources: dict[tuple[str, str], Object], kind: str, name: str) -> None:
    found = resources[kind, name]
    conditions = found["spec"] if "spec" in found else found["webhooks"][0]
    assert f"startsWith('{PREFIX}')" in conditions["matchConditions"][0]["expression"]


def test_nothing_matches_updates(resources: dict[tuple[str, str], Object]) -> None:
    """A rule on UPDATE keeps finished pods from losing their finalizers."""
    rules = [
        rule
        for one in resources.values()
        for holder in [*one.get("webhooks", []), one.get("spec", {}).get("matchConstraints", {})]
        for rule in [*holder.get("rules", []), *holder.get("resourceRules", [])]
    ]
    assert rules
    assert {operation for rule in rules for operation in rule.get("operations", ["CREATE"])} == {"CREATE"}


def test_the_container_uses_options_that_exist(resources: dict[tuple[str, str], Object]) -> None:
    (container,) = resources["Deployment", "podferry-webhook"]["spec"]["template"]["spec"]["containers"]
    known = {flag for option in webhook.command.params for flag in option.opts}
    used = {word.partition("=")[0] for word in container["args"] if word.startswith("--")}
    assert used <= known


def test_the_service_targets_the_container(resources: dict[tuple[str, str], Object]) -> None:
    template = resources["Deployment", "podferry-webhook"]["spec"]["template"]
    service = resources["Service", "podferry-webhook"]["spec"]
    labels = template["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    ports = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
    assert service["ports"][0]["targetPort"] in {*ports, *ports.values()}
