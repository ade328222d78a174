"""Rendered entries. That the API server accepts and evaluates them is tested end to end."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podferry.webhook.policy.pod_selector import GPU_RESOURCES
from podferry.webhook.policy.policy import Enforcement, InjectionRule, PodSelector, Policy
from podferry.webhook.policy.rule_webhooks import OPTED_IN_WEBHOOK, with_rule_webhooks

MANIFEST = Path(__file__).parents[3] / "deploy" / "base" / "webhooks.yaml"
(CONFIGURATION,) = (
    one for one in yaml.safe_load_all(MANIFEST.read_text()) if one["kind"] == "MutatingWebhookConfiguration"
)
BASE: list[dict[str, Any]] = CONFIGURATION["webhooks"]
SHARED = [one["name"] for one in BASE[0]["matchConditions"] if one["name"] != "opted-in"]
"""Conditions that apply to every pod."""
DIGITS = {"dataset": "s3://datasets/digits"}


def ruled(policy: Policy, *selectors: PodSelector, **changes: Any) -> Policy:
    rules = tuple(InjectionRule(f"rule-{at}", one, DIGITS) for at, one in enumerate(selectors))
    return msgspec.structs.replace(policy, rules=rules, **changes)


def entry(policy: Policy, selector: PodSelector) -> dict[str, Any]:
    *others, made = with_rule_webhooks(BASE, ruled(policy, selector))
    assert others == BASE
    return made


def conditions(made: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["expression"] for one in made["matchConditions"]}


def test_it_is_called_like_the_entry_of_pods_that_opt_in(policy: Policy) -> None:
    (base,) = (one for one in BASE if one["name"] == OPTED_IN_WEBHOOK)
    made = entry(policy, PodSelector(labels={"app": "train"}))
    same = ("clientConfig", "rules", "matchPolicy", "sideEffects", "admissionReviewVersions")
    assert {key: made[key] for key in same} == {key: base[key] for key in same}
    assert made["namespaceSelector"] == base["namespaceSelector"]
    assert (made["name"], made["failurePolicy"]) == ("rule-0.rules.podferry.io", "Ignore")
    assert made["reinvocationPolicy"] == "IfNeeded"


def test_inherited_conditions_hold_for_pods_without_annotations() -> None:
    """A missing field is an error in CEL; with `failurePolicy: Ignore` the pod would not be sent."""
    inherited = [one["expression"] for one in BASE[0]["matchConditions"] if one["name"] in SHARED]
    optional = [one for one in inherited if "object.metadata.annotations" in one]
    assert optional
    assert all(one.strip().startswith("!has(object.metadata.annotations) ||") for one in optional)


def test_what_selectors_can_express_is_in_selectors(policy: Policy) -> None:
    made = entry(
        policy, PodSelector(namespaces=("a", "b"), namespace_labels={"tier": "x"}, labels={"app": "y"})
    )
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    assert made["namespaceSelector"]["matchLabels"] == {"tier": "x"}
    assert made["namespaceSelector"]["matchExpressions"][-1] == named
    assert made["namespaceSelector"]["matchExpressions"][0]["operator"] == "NotIn"
    assert made["objectSelector"] == {"matchLabels": {"app": "y"}}
    assert list(conditions(made)) == ["not-opted-in", *SHARED]


def test_the_rest_is_in_cel(policy: Policy) -> None:
    made = entry(policy, PodSelector(namespaces=("team-*", "prod"), owners=("Pod", "JobSet"), gpus=2))
    found = conditions(made)
    assert list(found) == ["not-opted-in", "namespaces", "owners", "gpus", *SHARED]
    assert found["namespaces"] == 'request.namespace.matches("^(team\\\\-.*|prod)$")'
    assert found["owners"].startswith("!has(object.metadata.ownerReferences) || ")
    # A JobSet owns its pods through Jobs.
    assert '["job", "jobset", "pod"]' in found["owners"]


@pytest.mark.parametrize(
    ("owner", "named"),
    [
        ("PyTorchJob", ["pytorchjob"]),
        ("SomethingNew", ["somethingnew"]),
        ("LeaderWorkerSet", ["leaderworkerset", "statefulset"]),
        ("VolcanoJob", ["job", "volcanojob"]),
        ("RayJob", ["raycluster", "rayjob"]),
    ],
)
def test_an_owner_by_the_kinds_that_its_pods_name(policy: Policy, owner: str, named: list[str]) -> None:
    """A kind that podferry does not know is the pod's own owner."""
    found = conditions(entry(policy, PodSelector(owners=(owner,))))["owners"]
    assert json.dumps(named) in found


def test_the_regex_of_resources_matches_what_the_globs_match(policy: Policy) -> None:
    found = conditions(entry(policy, PodSelector(gpus=1)))["gpus"]
    literal = re.search(r'matches\((".*?")\)', found)
    assert literal is not None
    pattern = re.compile(json.loads(literal[1]))
    names = ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "gpu.intel.com/i915", "nvidia.com/gpux", "cpu"]
    by_globs = [name for name in names if any(fnmatchcase(name, glob) for glob in GPU_RESOURCES)]
    assert [name for name in names if pattern.search(name)] == by_globs == names[:3]


def test_entries_of_earlier_rules_are_replaced(policy: Policy) -> None:
    two = with_rule_webhooks(BASE, ruled(policy, PodSelector(gpus=1), PodSelector(gpus=2)))
    made = [one["name"].partition(".")[0] for one in two[len(BASE) :]]
    assert made == ["rule-0", "rule-1"]
    assert with_rule_webhooks(two, ruled(policy, PodSelector(gpus=1))) == two[:-1]
    assert with_rule_webhooks(two, policy) == BASE


@pytest.mark.parametrize("enforcement", list(Enforcement))
def test_only_a_disabled_policy_registers_nothing(policy: Policy, enforcement: Enforcement) -> None:
    made = with_rule_webhooks(BASE, ruled(policy, PodSelector(gpus=1), enforcement=enforcement))
    assert (len(made) > len(BASE)) is (enforcement is not Enforcement.DISABLED)


def test_rules_of_defaults_need_no_entry(policy: Policy) -> None:
    rule = InjectionRule("sizes", PodSelector(gpus=1), {"checkpoint-size": "1Gi"})
    assert with_rule_webhooks(BASE, msgspec.structs.replace(policy, rules=(rule,))) == BASE


def test_without_the_entry_of_pods_that_opt_in_nothing_is_known(policy: Policy) -> None:
    assert with_rule_webhooks([], ruled(policy, PodSelector(gpus=1))) == []
