"""Pages in the place of a service's errors, and what is shown of them."""

from __future__ import annotations

import pytest

from podferry.storage.http.foreign_response import excerpt, is_foreign_page
from podferry.storage.http.store_client import StoreResponse

PAGE = {"Content-Type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("status", "headers", "text", "foreign"),
    [
        (404, PAGE, "<html>", True),
        (405, PAGE, "<html>", True),
        (404, PAGE, "", False),
        (502, PAGE, "<html>", False),
        (404, {"Content-Type": "application/json"}, "{}", False),
    ],
)
def test_a_page_that_says_not_found_is_foreign_unless_it_is_empty(status, headers, text, foreign) -> None:
    assert is_foreign_page(StoreResponse(status, headers, text)) is foreign


@pytest.mark.parametrize(
    ("headers", "text", "shown"),
    [
        ({"Content-Type": "text/html"}, "\n <html>\n", "text/html: '<html>'"),
        ({}, " ", "no content type: an empty body"),
        ({}, "x " * 1000, f"no content type: '{'x ' * 30}'"),
        ({}, f'{{"token": "{"aB3-" * 100}"}}', 'no content type: \'{"token": "\\u2026"}\''),
        ({"Location": "https://u:p@sso.test/login?token=x#y"}, "", "Location 'https://sso.test/login'"),
    ],
)
def test_an_excerpt_has_no_secrets(headers: dict[str, str], text: str, shown: str) -> None:
    assert excerpt(StoreResponse(200, headers, text)) == shown
