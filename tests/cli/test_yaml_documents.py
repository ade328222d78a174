import pytest

from podferry.cli.yaml_documents import MAX_NESTING, read_documents
from podferry.contract.errors import InvalidSpec


def test_documents_that_are_empty_are_left_out() -> None:
    assert read_documents("---\n---\na: 1\n---\n[2]\n", "pods.yaml") == [{"a": 1}, [2]]


def test_much_is_not_deep() -> None:
    (found,) = read_documents("- [{a: 1}]\n" * MAX_NESTING, "pods.yaml")
    assert found == [[{"a": 1}]] * MAX_NESTING


@pytest.mark.parametrize("text", ["[" * 2000 + "]" * 2000, "- " * 2000 + "x", "{a: " * 2000 + "}" * 2000])
def test_deep_nesting_is_refused(text: str) -> None:
    """Well-formed, and what would be refused by the parser anyway; some versions of libyaml are first."""
    for each in (text, text * 100):
        with pytest.raises(InvalidSpec, match=r"nested more than 1,000 deep|exceeded maximum nesting depth"):
            read_documents(each, "pods.yaml")


def test_other_text() -> None:
    with pytest.raises(InvalidSpec, match=r"pods.yaml is not YAML \(line 2"):
        read_documents("a: [1\nb: }", "pods.yaml")
