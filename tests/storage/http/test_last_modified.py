"""The date of the last change as a tag."""

from __future__ import annotations

import pytest

from podferry.storage.http.last_modified import is_date_tag, tag_of

CHANGED, LATER = "Sat, 28 Nov 2026 10:00:00 GMT", "Sat, 28 Nov 2026 10:00:01 GMT"


@pytest.mark.parametrize("etag", ['"t"', 'W/"t"', "t"])
def test_an_etag_comes_first(etag: str) -> None:
    assert tag_of(etag, CHANGED, LATER) == etag
    assert not is_date_tag(etag)


def test_a_date_before_the_response_is_a_tag() -> None:
    assert tag_of("", CHANGED, LATER) == CHANGED
    assert is_date_tag(CHANGED)


@pytest.mark.parametrize(
    ("modified", "sent"),
    [
        ("", LATER),
        (CHANGED, CHANGED),  # a server that states when it responds
        (LATER, CHANGED),
        (CHANGED, ""),
        (CHANGED, "yesterday"),
        ("yesterday", LATER),
        ("Sat, 99 Nov 2026 10:00:00 GMT", LATER),
        ("yesterday GMT", LATER),
    ],
)
def test_any_other_date_is_none(modified: str, sent: str) -> None:
    assert tag_of("", modified, sent) == ""
