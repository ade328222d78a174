"""Names that differ only in digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.series import by_series, series_of, without_counterpart, words_of

NAMES = st.lists(st.from_regex(r"[ab][0-9]{1,2}(-[0-9]{1,2})?", fullmatch=True), unique=True)


@pytest.mark.parametrize(
    ("name", "series"),
    [("step-100", "step-#"), ("last", "last"), ("1-of-2/3", "#-of-#/#"), ("", "")],
)
def test_a_series_is_the_name_without_its_numbers(name: str, series: str) -> None:
    assert series_of(name) == series


def test_names_of_a_series_are_in_the_order_of_their_numbers() -> None:
    assert by_series(["r10", "r9", "last", "r011"]) == {"r#": ["r9", "r10", "r011"], "last": ["last"]}


def test_each_series_needs_as_many_names() -> None:
    expected = ["step-1/rank0", "step-1/rank1", "step-1/index"]
    assert without_counterpart(expected, ["step-2/rank0", "step-2/index"]) == ["step-1/rank1"]
    assert without_counterpart(expected, []) == sorted(expected)


@given(NAMES, NAMES)
def test_nothing_is_missing_of_a_subset_nor_more_than_expected(one: list[str], other: list[str]) -> None:
    assert without_counterpart(one, [*one, *other]) == []
    assert set(without_counterpart(one, other)) <= set(one)
    assert len(without_counterpart(one, other)) >= len(one) - len(other)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("netG_epoch_1", ["net", "g", "epoch"]),
        ("netG_A2B", ["net", "g", "a", "b"]),
        ("ResNet50", ["resnet"]),
        ("G_1000", ["g"]),
        ("10", []),
    ],
)
def test_a_last_capital_is_a_word(name: str, words: list[str]) -> None:
    assert words_of(name) == words
