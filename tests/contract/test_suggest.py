import pytest

from podferry.contract.suggest import did_you_mean

KNOWN = ("dataset", "dataset-path", "checkpoints")


@pytest.mark.parametrize(("word", "near"), [("datset", "dataset"), ("checkpoint", "checkpoints")])
def test_the_nearest_word_is_proposed(word: str, near: str) -> None:
    assert did_you_mean(word, KNOWN) == f"Did you mean {near!r}?"


def test_a_far_word_gets_the_other_remedy() -> None:
    assert did_you_mean("zzz", KNOWN, "Known: all") == "Known: all"
    assert did_you_mean("zzz", []) == ""


def test_the_order_of_the_known_words_does_not_matter() -> None:
    assert did_you_mean("ab", ["ac", "ad"]) == did_you_mean("ab", ["ad", "ac"])
