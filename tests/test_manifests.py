"""The manifests match the code: resources, prefix, ports, commands, policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.cli import webhook
from podferry.contract.spec import PREFIX
from podferry.webhook.admission.listener import LAST_RESPONSES_SECONDS, MAX_DRAIN_SECONDS
from podferry.webhook.policy.policy_yaml import read_policy

DEPLOY = Path(__file__).parents[1] / "deploy"
BASE = DEPLOY / "base"
HIGHEST_USER_PRIORITY = 1_000_000_000
"""Source: Kubernetes, "Pod Priority and Preemption"."""
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
    """A rule on UPDATE keeps finished pods from losing their finalizers, unless it only warns."""
    rules = [
        rule
        for (_, name), one in resources.items()
        if name != "podferry-misplaced-annotations"
        for holder in [*one.get("webhooks", []), one.get("spec", {}).get("matchConstraints", {})]
        for rule in [*holder.get("rules", []), *holder.get("resourceRules", [])]
    ]
    of_pods = [rule for rule in rules if rule.get("resources") != ["configmaps"]]
    assert of_pods
    assert {operation for rule in of_pods for operation in rule.get("operations", ["CREATE"])} == {"CREATE"}


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


def test_the_pod_leaves_time_to_end(resources: dict[tuple[str, str], Object]) -> None:
    spec = resources["Deployment", "podferry-webhook"]["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > MAX_DRAIN_SECONDS + LAST_RESPONSES_SECONDS
    (container,) = spec["containers"]
    probes = [container[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
    assert min(probe["timeoutSeconds"] for probe in probes) >= 5
    assert resources["PriorityClass", spec["priorityClassName"]]["value"] <= HIGHEST_USER_PRIORITY


def test_ports_are_those_of_the_options(resources: dict[tuple[str, str], Object]) -> None:
    template = resources["Deployment", "podferry-webhook"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    options = dict(word[2:].split("=", 1) for word in container["args"] if word.startswith("--"))
    assert ports == {"https": options["port"], "metrics": options["metrics-port"]}
    assert template["metadata"]["annotations"]["prometheus.io/port"] == ports["metrics"]
    rules = resources["NetworkPolicy", "podferry-webhook"]["spec"]["ingress"]
    assert {port["port"] for rule in rules for port in rule["ports"]} == set(ports)


def test_what_is_merged_as_a_whole_is_complete(resources: dict[tuple[str, str], Object]) -> None:
    """Defaults of the API server would be conflicts for a server-side apply after a client-side one."""
    containers = resources["Deployment", "podferry-webhook"]["spec"]["template"]["spec"]["containers"]
    fields = [
        one["valueFrom"]["fieldRef"] for each in containers for one in each["env"] if "valueFrom" in one
    ]
    assert fields
    assert {field.get("apiVersion") for field in fields} == {"v1"}
    policies = [one for (kind, _), one in resources.items() if kind == "ValidatingAdmissionPolicy"]
    keys = {"matchPolicy", "namespaceSelector", "objectSelector", "resourceRules"}
    assert [set(one["spec"]["matchConstraints"]) for one in policies] == [keys, keys]


def test_misplaced_annotations_are_only_warned_of(resources: dict[tuple[str, str], Object]) -> None:
    spec = resources["ValidatingAdmissionPolicyBinding", "podferry-misplaced-annotations"]["spec"]
    assert spec["validationActions"] == ["Warn"]
    assert (
        resources["ValidatingAdmissionPolicy", "podferry-misplaced-annotations"]["spec"]["failurePolicy"]
        == "Ignore"
    )
