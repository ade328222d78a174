"""Pages as servers send them; the errors that a user meets are in `test_web_directory.py`."""

from __future__ import annotations

import pytest

from podferry.storage.web.page import decoded

TEXT = '<a href="é">'


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        (TEXT.encode(), ""),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("latin-1"), "ISO-8859-1"),
        (TEXT.encode("utf-16"), "UTF-16"),
        (TEXT.encode("utf-16"), ""),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "latin-1"),
        (TEXT.encode(), "no-such-charset"),
        (TEXT.encode(), "idna"),
        (TEXT.encode(), "base64"),
    ],
)
def test_the_character_set_is_the_declared_one(data: bytes, charset: str) -> None:
    assert decoded(data, charset) == TEXT


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="latin-1">', "<meta content='text/html; charset=latin-1'>", '<?xml encoding="latin-1"?>'],
)
def test_a_page_may_declare_it(declaration: str) -> None:
    assert decoded((declaration + TEXT).encode("latin-1"), "") == declaration + TEXT


def test_what_cannot_be_decoded_does_not_hide_the_rest() -> None:
    assert decoded(b'\xff<a href="a">', "utf-8") == '\ufffd<a href="a">'
