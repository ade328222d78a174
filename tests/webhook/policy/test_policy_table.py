from podferry.contract.errors import Problem
from podferry.webhook.policy.policy_table import ListOf, Table, read_table
from podferry.webhook.policy.policy_values import RULE_NAME
from podferry.webhook.policy.selector_values import COUNT

TABLE: Table = {
    "name": RULE_NAME,
    "limits": {"maxPods": COUNT},
    "groups": ListOf({"name": RULE_NAME, "limits": {"maxPods": COUNT}}, ("name",)),
}


def read(document: object) -> tuple[dict[str, object], list[str]]:
    problems: list[Problem] = []
    values = read_table(document, TABLE, "", problems, ("name",))
    return values, [str(problem) for problem in problems]


def test_names_become_those_of_fields() -> None:
    document = {
        "name": "a",
        "limits": {"maxPods": 3},
        "groups": [{"name": "b", "limits": {"maxPods": 1}}, {"name": "c"}],
    }
    values = {
        "name": "a",
        "limits": {"max_pods": 3},
        "groups": ({"name": "b", "limits": {"max_pods": 1}}, {"name": "c"}),
    }
    assert read(document) == (values, [])


def test_problems_have_paths() -> None:
    document = {
        "nam": "a",
        "limits": {"maxPods": 0, "minPods": 1},
        "groups": [{"name": ""}, {"limits": []}, "x"],
    }
    assert read(document) == (
        {"limits": {}, "groups": ({}, {"limits": {}}, {})},
        [
            "name is missing from the policy. Add name.",
            "nam: unknown key in the policy. Did you mean 'name'?",
            "limits.maxPods: not an integer above 0 (0). Write for example 1.",
            "limits.minPods: unknown key in the policy. Did you mean 'maxPods'?",
            "groups[0].name: not a string (''). Write a string.",
            "groups[1].name is missing from the policy. Add name.",
            "groups[1].limits: not a mapping ([]). Keys: maxPods.",
            "groups[2]: not a mapping ('x'). Keys: name, limits.",
        ],
    )


def test_a_list_is_one() -> None:
    assert read({"name": "a", "groups": {}})[1] == [
        "groups: not a list ({}). Write a list of mappings: name, limits."
    ]
