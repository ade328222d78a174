from __future__ import annotations

import pytest

from podferry.contract.annotations import read_annotations
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.dataset_selection import selection_of
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX

WHOLE = f"s3://b/k#sha256={'3f' * 32}&bytes=7&files=2"
SELECTED = f"{WHOLE}&include=*.jpg,*.png&exclude=a.jpg"


def test_a_reference_without_a_selection_leaves_the_choice() -> None:
    assert selection_of(parse_reference(WHOLE), ["*.jpg"]) == (("*.jpg",), ())
    assert selection_of(parse_reference("s3://b/k")) == ((), ())


@pytest.mark.parametrize("include", [(), ("*.jpg", "*.png")])
@pytest.mark.parametrize("exclude", [(), ("a.jpg",)])
def test_the_selection_of_the_reference_applies_and_may_be_repeated(
    include: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    assert selection_of(parse_reference(SELECTED), include, exclude) == (("*.jpg", "*.png"), ("a.jpg",))


def test_another_selection_than_that_of_the_reference_is_an_error_with_both() -> None:
    with pytest.raises(InvalidSpec) as caught:
        selection_of(parse_reference(f"{WHOLE}&include=*.jpg"), ["*.png"], ["b.*"])
    include, exclude = map(str, caught.value.problems)
    assert "include selects other files than the dataset reference (*.png; frozen with *.jpg)" in include
    assert "exclude selects other files than the dataset reference (b.*; frozen without)" in exclude


def test_misleading_globs_in_a_reference_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="braces are not expanded"):
        selection_of(parse_reference(f"{WHOLE}&include=*.%7Bjpg%7D"))


def test_a_pod_takes_the_selection_of_its_references() -> None:
    spec = read_annotations(
        {f"{PREFIX}dataset": SELECTED, f"{PREFIX}dataset.test": WHOLE, f"{PREFIX}include.test": "*"}
    )
    assert spec is not None
    first, test = spec.datasets
    assert (first.include, first.exclude, first.reference) == (("*.jpg", "*.png"), ("a.jpg",), SELECTED)
    assert (test.include, test.exclude) == (("*",), ())


def test_a_pod_with_another_selection_is_refused() -> None:
    settings = {"dataset.test": SELECTED, "exclude.test": "b.jpg", "shm-size": "lots"}
    with pytest.raises(InvalidSpec) as caught:
        read_annotations({PREFIX + name: text for name, text in settings.items()})
    assert len(caught.value.problems) == 2
    said = str(caught.value)
    assert "podferry.io/exclude.test selects other files" in said
    assert "b.jpg; frozen with a.jpg" in said
