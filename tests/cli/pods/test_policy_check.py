from typing import Any

import pytest
import yaml

from podferry.cli.pods.policy_check import PodCheck, changed_checks, check_pods, namespaces_of
from podferry.cli.pods.policy_file import read_policy_file
from podferry.webhook.policy.policy import Policy

POLICY = """apiVersion: podferry.io/v1alpha1
kind: InjectionPolicy
image: podferry:1
rules:
  - name: digits
    match: {namespaceLabels: {tier: training}, owners: [Job]}
    annotations: {dataset: s3://datasets/digits, dataset-size: 1Gi}
"""
PODS = """
kind: Namespace
metadata: {name: team-a, labels: {tier: training}}
---
kind: Job
metadata: {name: digits, namespace: team-a}
spec: {template: {spec: {containers: [{name: trainer, image: pytorch}]}}}
---
kind: Job
metadata: {name: own, namespace: team-a}
spec:
  template:
    metadata: {annotations: {podferry.io/dataset: "s3://datasets/own", podferry.io/dataset-size: 1Mi}}
    spec: {containers: [{name: trainer, image: pytorch}]}
---
kind: Job
metadata: {name: wrong, namespace: team-a}
spec:
  template:
    metadata: {annotations: {podferry.io/datset: x}}
    spec: {containers: [{name: trainer, image: pytorch}]}
---
kind: Job
metadata: {name: elsewhere, namespace: other}
spec: {template: {spec: {containers: [{name: trainer, image: pytorch}]}}}
---
kind: Pod
metadata: {name: bare}
spec: {containers: [{name: trainer, image: pytorch}]}
---
kind: Pod
metadata: {name: old, annotations: {podferry.io/status: injected}}
spec: {containers: [{name: trainer, image: pytorch}]}
---
kind: Pod
metadata: {name: broken, namespace: team-a, annotations: {podferry.io/world: 2}}
spec: {containers: [{name: trainer, image: pytorch}]}
"""


@pytest.fixture
def policy() -> Policy:
    return read_policy_file(POLICY, "policy.yaml")


@pytest.fixture
def checks(policy: Policy) -> dict[str, PodCheck]:
    documents = list(yaml.safe_load_all(PODS))
    found = check_pods(policy, {"pods.yaml": documents}, namespaces_of(documents), "default")
    return {one.pod: one for one in found}


def test_what_happens_to_each_pod(checks: dict[str, PodCheck]) -> None:
    assert {name: (one.namespace, one.outcome, one.rule) for name, one in checks.items()} == {
        "Job digits": ("team-a", "injected", "digits"),
        "Job own": ("team-a", "injected", None),
        "Job wrong": ("team-a", "refused", "digits"),
        "Job elsewhere": ("other", "untouched", None),
        "Pod bare": ("default", "untouched", None),
        "Pod old": ("default", "already injected", None),
        "Pod broken": ("team-a", "malformed", None),
    }
    assert [name for name, one in checks.items() if one.refused] == ["Job wrong", "Pod broken"]


def test_what_the_rule_adds_and_costs(checks: dict[str, PodCheck]) -> None:
    digits = checks["Job digits"]
    assert digits.added_text == "dataset: s3://datasets/digits, dataset-size: 1Gi"
    assert (digits.sidecar or 0) > 1024**3
    assert checks["Job own"].added == {}
    assert "datset: unknown annotation" in checks["Job wrong"].problems[0]
    assert "Quote it" in checks["Pod broken"].problems[0]


def test_what_changes(policy: Policy, checks: dict[str, PodCheck]) -> None:
    documents = list(yaml.safe_load_all(PODS))
    current = read_policy_file("\n".join(POLICY.splitlines()[:3]), "current.yaml")
    before = check_pods(current, {"pods.yaml": documents}, namespaces_of(documents), "default")
    assert {one.pod: one.outcome_text for one in changed_checks(before, list(checks.values()))} == {
        "Job digits": "untouched -> injected",
        "Job wrong": "refused",  # now by the rule, too
    }
    assert changed_checks(before, before) == []


def test_unknown_labels_are_an_assumption(checks: dict[str, PodCheck]) -> None:
    note = "the labels of namespace other are unknown: assumed to have none"
    assert note in checks["Job elsewhere"].notes
    assert not any("labels" in note for note in checks["Job digits"].notes)


def test_namespaces_of_lists() -> None:
    items: list[Any] = [{"kind": "Namespace", "metadata": {"name": "a", "labels": {"b": "c"}}}]
    assert namespaces_of([{"kind": "List", "items": items}, "text"]) == {"a": {"b": "c"}}


def test_namespaces_whose_pods_are_never_sent(policy: Policy) -> None:
    pod = {"kind": "Job", **yaml.safe_load(PODS.split("---")[1]), "metadata": {"name": "digits"}}
    labels = {"kube-system": {"tier": "training"}}
    (check,) = check_pods(policy, {"x": [pod]}, labels, "kube-system")
    assert check.outcome == "untouched"
    assert check.notes == ("pods in kube-system are not sent to the webhook",)
