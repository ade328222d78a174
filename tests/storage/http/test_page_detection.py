"""Which responses may be a web page in the place of a file."""

from __future__ import annotations

import codecs

import pytest

from podferry.storage.http.page_detection import begins_as_page, is_html, is_markup, may_be_page

BINARY, HTML = (
    f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nX: 1".encode()
    for kind in ("application/octet-stream", "Text/HTML;charset=utf-8")
)
PAGE = memoryview(b"<!doctype html><p>Sign in")


@pytest.mark.parametrize(
    ("name", "offset", "head", "data", "expected"),
    [
        ("a.bin", 0, BINARY, PAGE, True),
        ("a.bin", 0, HTML, PAGE, True),
        ("a.bin", 0, HTML, memoryview(b"<p>"), True),
        ("a.bin", 9, HTML, memoryview(b"x"), True),
        ("a.bin", 0, HTML, memoryview(b"x"), False),
        ("a.bin", 9, BINARY, PAGE, False),
        ("a.bin", 0, b"HTTP/1.1 200 OK", PAGE, True),
        ("a.bin", 0, BINARY, memoryview(b"<htmlx>"), False),
        ("a.xml", 0, BINARY, PAGE, False),
        ("set/a", 0, BINARY, PAGE, False),
        ("set/a", 0, HTML, PAGE, True),
        ("a.Html", 0, HTML, PAGE, False),
    ],
)
def test_which_responses_may_be_pages(name: str, offset: int, head: bytes, data, expected: bool) -> None:
    assert may_be_page(name, offset, head, data) is expected


def test_pages_in_other_character_sets() -> None:
    text = "\n<HTML lang='en'>"
    for data in (text.encode(), text.encode("utf-16"), codecs.BOM_UTF8 + text.encode()):
        assert begins_as_page("a.bin", data)
        assert is_markup(data)
    assert not is_markup(b"text")
    assert is_html("application/xhtml+xml; q=1")
