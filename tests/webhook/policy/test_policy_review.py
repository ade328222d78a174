import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_review import policy_problems

VALID = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"


def test_a_valid_policy() -> None:
    assert policy_problems({"data": {"policy.yaml": VALID, "notes.txt": "more"}}) == ()


def test_all_problems_at_once() -> None:
    problems = policy_problems({"data": {"policy.yaml": f"{VALID}agentPort: 80\nbounds: {{grce: 1m}}\n"}})
    assert [problem.what for problem in problems] == [
        "agentPort: not an unprivileged port",
        "bounds.grce: unknown key in the policy",
    ]


def test_a_config_map_without_the_policy() -> None:
    (problem,) = policy_problems({"data": {"policy.yml": VALID}})
    assert str(problem) == "the ConfigMap has no key policy.yaml (keys: policy.yml). Put the policy there."
    assert "keys: none" in str(policy_problems({})[0])
    assert "keys: none" in str(policy_problems({"data": None})[0])


def test_what_is_not_yaml() -> None:
    assert "the policy is not YAML" in str(policy_problems({"data": {"policy.yaml": "{"}})[0])


def test_what_is_no_config_map() -> None:
    with pytest.raises(InvalidSpec, match=r"malformed .*data"):
        policy_problems({"data": []})
