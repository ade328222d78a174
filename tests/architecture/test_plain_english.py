"""The words that `make check` keeps out: each is found, and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.support.plain_english import BETTER, findings, main

BANNED = (
    "as we wish",
    "run it anew",
    "put it aside",
    "besides that",
    "it tells the agent",
    "it brings the file",
    "lacking a file",
    "the file lies below the root",
    "the file in hand",
    "what for?",
    "whoever asks",
    "it goes on",
    "see that no file is left",
    "One more: a file",
    "a file of nobody",
    "None where there is none",
)


@pytest.mark.parametrize("words", BETTER)
def test_every_banned_word_has_its_sentence(words: str) -> None:
    assert any(re.search(words, sentence, re.IGNORECASE) for sentence in BANNED)


@pytest.mark.parametrize("sentence", BANNED)
def test_a_banned_word_is_found(sentence: str) -> None:
    assert [line for line, _, _ in findings(f"a first line\n{sentence}")] == [2]


@pytest.mark.parametrize(
    "text", ["tell_agent", "self._wish", "WishList", "theWish", "it goes\non", "# goes\n# on"]
)
def test_names_and_broken_lines_count(text: str) -> None:
    assert len(list(findings(text))) == 1


@pytest.mark.parametrize("text", ["foretold", "storytelling", "a lie between", "def tell(self)", "category"])
def test_other_words_are_free(text: str) -> None:
    assert list(findings(text)) == []


def test_the_project_is_free_of_them(capsys) -> None:
    assert main() == 0, capsys.readouterr().out
