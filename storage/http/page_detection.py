"""Recognizes a web page in the place of a file: of a login, of maintenance, of a proxy."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from podferry.contract.lazy_pattern import lazy_pattern

HTML_TYPES = ("text/html", "application/xhtml+xml")
PAGE_SUFFIXES = (".html", ".htm", ".xhtml", ".xht", ".shtml")
"""Of files that are web pages themselves."""
MARKUP_SUFFIXES = (*PAGE_SUFFIXES, ".mht", ".mhtml", ".xml", ".svg", ".md", ".php", ".asp", ".aspx", ".jsp")
"""Of files that may begin as a web page does."""
START_BYTES = 1024
"""Where a file begins: an empty line or a byte order mark may come before its markup."""
BLANKS = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n\f"
PAGE_START = lazy_pattern(rb"<(!doctype\s+html|html)[\s>]", re.IGNORECASE)
CONTENT_TYPE = lazy_pattern(rb"\r\ncontent-type:[ \t]*([^\r;]*)", re.IGNORECASE)


def is_html(content_type: str) -> bool:
    """Whether a Content-Type is that of a web page."""
    return content_type.partition(";")[0].strip().lower() in HTML_TYPES


def is_markup(start: bytes | bytearray) -> bool:
    """Whether this is the beginning of a page, as far as it goes, in any of the usual character sets."""
    return bytes(start[:START_BYTES]).lstrip(BLANKS)[:1] in {b"<", b""}


def begins_as_page(name: str, start: bytes) -> bool:
    """Whether a file begins as a web page, and its name has a suffix that is not one of markup.

    A name without a suffix says nothing: copies of web pages are often stored under a number or a checksum.
    """
    if PAGE_START.match(bytes(start[:START_BYTES]).lstrip(BLANKS).replace(b"\0", b"")) is None:
        return False
    suffix = PurePosixPath(name).suffix.lower()
    return bool(suffix) and suffix not in MARKUP_SUFFIXES


def may_be_page(name: str, offset: int, head: bytes, data: memoryview) -> bool:
    """Whether a plain response may be a page in the place of a file.

    Args:
        name: Of the file.
        offset: Where `data` begins in the file, bytes.
        head: The response's, as it was received.
        data: The beginning of the body.
    """
    start, found = bytes(data[:START_BYTES]), CONTENT_TYPE.search(head)
    if found and is_html(found[1].decode("latin-1")):
        is_page = offset > 0 or is_markup(start)
    else:
        is_page = offset == 0 and begins_as_page(name, start)
    return is_page and PurePosixPath(name).suffix.lower() not in PAGE_SUFFIXES  # taking a name apart is slow
