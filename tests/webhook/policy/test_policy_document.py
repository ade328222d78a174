import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy_document import read_document


def problem(text: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read_document(text)
    return str(caught.value)


def test_one_document_with_separators_around_it() -> None:
    assert read_document("---\na: 1\n---\n# the end\n") == {"a": 1}


def test_a_key_twice_would_undo_the_first() -> None:
    text = "allowed:\n  sources: [a]\n  sources: [b]\n"
    assert problem(text) == "the policy is not YAML (line 3: the key 'sources' is written twice). Correct it."


def test_anchors_merges_and_what_overrides_them() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: [*a, *b], y: 3}\n"
    assert read_document(text)["c"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the policy is empty. Write kind: InjectionPolicy and its keys."),
        ("# nothing\n", "the policy is empty. Write kind: InjectionPolicy and its keys."),
        (
            "a: 1\n---\nb: 2\n",
            "the policy has several documents (2). Write all its keys in one, without ---.",
        ),
        ("- a\n", "the policy is not a mapping (['a']). Write kind: InjectionPolicy and its keys."),
        ("a:\n\tb: 1\n", "line 2: found character '\\t' that cannot start any token"),
        ("a: 2026-02-31\n", "the policy is not YAML (day is out of range for month)"),
        ("[" * 2000, "the policy is not YAML"),
    ],
)
def test_what_is_no_policy(text: str, expected: str) -> None:
    assert expected in problem(text)
