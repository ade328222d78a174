"""Errors of listings; `tests/storage/s3/test_listing.py` has them from servers."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Corrupt
from podferry.contract.uri import parse_uri
from podferry.storage.errors.broken_listing import (
    check_delimiter,
    check_prefix,
    endless_listing,
    incomplete_listing,
)

URI = parse_uri("s3://bucket/d")


def test_keys_begin_with_the_prefix() -> None:
    check_prefix(URI, ["d/a", "d/"], "d/")
    check_prefix(URI, ["d/a", "x"], "")
    with pytest.raises(Corrupt, match=r"not below s3://bucket/d \(the key 'x\\x1b'\)"):
        check_prefix(URI, ["d/a", "x\x1b"], "d/")


def test_directories_are_listed_if_asked_for() -> None:
    check_delimiter(URI, "", [])
    with pytest.raises(Corrupt, match=r"directories of s3://bucket/d .* \(the directory 'd/x/'\)"):
        check_delimiter(URI, "", ["d/x/"])
    with pytest.raises(Corrupt, match=r"\(the delimiter '/'\)"):
        check_delimiter(URI, "/", [])


def test_the_messages_have_what_was_measured() -> None:
    assert "s3://bucket/d has no end (2,000 objects; why)" in str(endless_listing(URI, 2000, "why"))
    assert "all of s3://bucket/d (no way behind 2,000 names)" in str(incomplete_listing(URI, 2000))
    assert "(no way behind 2,000 names: why)" in str(incomplete_listing(URI, 2000, "why"))
