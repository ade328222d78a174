from __future__ import annotations

import re

import pytest

from podferry.contract.lazy_pattern import lazy_pattern


def test_it_finds_what_the_pattern_finds() -> None:
    lazy = lazy_pattern("(A)b", re.IGNORECASE)
    for _ in range(2):
        found = lazy.fullmatch("aB")
        assert found is not None
        assert found[1] == "a"
    assert (lazy.findall("abxAB"), lazy.sub("", "abx"), lazy.groups) == (["a", "A"], "x", 1)
    assert lazy_pattern(b"a+").fullmatch(b"aa")


def test_it_is_compiled_at_its_first_use() -> None:
    lazy = lazy_pattern("(")
    assert lazy.pattern == "("
    with pytest.raises(re.error):
        lazy.search("")
