"""Heads that are expensive to parse."""

from __future__ import annotations

from contextlib import suppress

import pytest

from podferry.contract.manifest import Entry
from podferry.storage.http.response_head import UnexpectedResponse, read_head
from tests.support.broken_http import TAG, Request, good, truth


@pytest.mark.timeout(20)
def test_a_head_of_blanks_is_read_at_once():
    """A pattern that backtracks would take hours."""
    request = Request(truth(1, 0, 9), 0, 9, complete=True)
    entry = Entry("1", 9, TAG)
    plain = good(request, 0).data
    assert read_head(bytearray(plain), len(plain), entry, 0, 9) is not None
    blanks = b" " * 5000
    head = b"HTTP/1.1 200 OK\r\nContent-Length:%s9\r\nETag:%s%s\r\n" % (blanks, blanks, TAG.encode())
    for end in (b"Other: 1", b"Content-Range:" + blanks):
        data = bytearray(head + end + b"\r\n\r\n" + request.data)
        with suppress(UnexpectedResponse):
            read_head(data, len(data), entry, 0, 9)
