import pytest

from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import InjectionRule, PodSelector, Policy
from podferry.webhook.policy.rules import applied_rule, requests_something, shadowed_rules

TEAM = Namespace("team-a")
DIGITS = {"dataset": "s3://d/digits", "dataset-size": "1Gi", "checkpoint-size": "2Gi", "secret": "store"}


def policy(*rules: tuple[str, PodSelector, dict[str, str]]) -> Policy:
    return Policy(image="podferry:1", rules=tuple(InjectionRule(*rule) for rule in rules))


def added(rule: dict[str, str], own: dict[str, str]) -> dict[str, str] | None:
    annotations = {f"podferry.io/{name}": text for name, text in own.items()}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": []}}
    applied = applied_rule(pod, TEAM, policy(("one", PodSelector(), rule)))
    return applied and {name.removeprefix("podferry.io/"): text for name, text in applied.added.items()}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        # A default for checkpoints has no effect without any.
        ({}, {"dataset", "dataset-size", "secret"}),
        ({"inject": "true"}, {"dataset", "dataset-size", "secret"}),
        ({"inject": "false"}, None),
        # The rule's size describes the rule's dataset.
        ({"dataset": "s3://other"}, {"secret"}),
        ({"dataset": "s3://other", "secret": "mine"}, None),
        ({"dataset-size": "9Gi"}, {"dataset", "secret"}),
        ({"checkpoints": "s3://r"}, {"dataset", "dataset-size", "checkpoint-size", "secret"}),
        ({"checkpoints": "s3://r", "checkpoint-size": "1Mi"}, {"dataset", "dataset-size", "secret"}),
        ({"dataset.val": "s3://val"}, {"dataset", "dataset-size", "secret"}),
    ],
)
def test_what_the_pod_sets_counts_more(own: dict[str, str], expected: set[str] | None) -> None:
    found = added(DIGITS, own)
    assert (found if found is None else set(found)) == expected


def test_stamps_are_no_settings() -> None:
    assert added(DIGITS, {"status": "audited", "rule": "x"}) == added(DIGITS, {})


def test_keys_of_named_datasets() -> None:
    rule = {"dataset.val": "s3://d/val", "include.val": "*.png"}
    assert added(rule, {}) == rule
    assert added(rule, {"dataset.val": "s3://mine"}) is None


def test_the_first_rule_that_matches_applies() -> None:
    rules = policy(
        ("others", PodSelector(namespaces=("prod",)), {"dataset": "s3://a"}),
        ("first", PodSelector(namespaces=("team-*",)), {"dataset": "s3://b"}),
        ("second", PodSelector(), {"dataset": "s3://c"}),
    )
    applied = applied_rule({"metadata": {}, "spec": {}}, TEAM, rules)
    assert applied is not None
    assert (applied.rule.name, applied.added) == ("first", {"podferry.io/dataset": "s3://b"})
    assert applied_rule({"metadata": {}, "spec": {}}, TEAM, policy()) is None


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (DIGITS, True),
        ({"outputs": "s3://o"}, True),
        ({"dataset.val": "s3://v"}, True),
        ({"checkpoint-size": "2Gi", "secret": "store"}, False),
    ],
)
def test_a_rule_of_defaults_requests_nothing(annotations: dict[str, str], expected: bool) -> None:
    assert requests_something(annotations) is expected


def test_a_rule_that_an_earlier_one_hides() -> None:
    team = PodSelector(namespaces=("team",))
    rules = policy(
        ("gpus", PodSelector(gpus=1), DIGITS), ("all", PodSelector(), DIGITS), ("team", team, DIGITS)
    )
    assert [(one.name, by.name) for one, by in shadowed_rules(rules.rules)] == [("team", "all")]
