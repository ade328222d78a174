"""What servers say about a directory, as documents."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.webdav.multistatus import (
    MAX_TEXT,
    BrokenOff,
    MultistatusError,
    MultistatusParser,
    Resource,
)

RCLONE = b"""<?xml version="1.0" encoding="UTF-8"?><D:multistatus xmlns:D="DAV:"><D:response>
<D:href>/d/</D:href><D:propstat><D:prop><D:resourcetype><D:collection xmlns:D="DAV:"/></D:resourcetype>
</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat><D:propstat><D:prop><D:getetag/></D:prop>
<D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response><D:response><D:href>/d/a%20b%23</D:href>
<D:propstat><D:prop><D:resourcetype/><D:getcontentlength>6</D:getcontentlength><D:getetag>"e1"</D:getetag>
<D:getlastmodified>today</D:getlastmodified></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>
</D:response></D:multistatus>"""
OTHER = b"""<multistatus xmlns="DAV:"><response><href>http://h/d/x</href>
<status>HTTP/1.1 403 Forbidden</status></response><response><href>/d/y</href><propstat><prop>
<getetag>bare</getetag><getcontentlength>-1</getcontentlength>
<other xmlns="urn:x"><getetag>"of another name space"</getetag></other></prop>
<status>HTTP/1.1 200 OK</status></propstat></response></multistatus>"""
FOUND = [
    Resource("/d/", is_directory=True),
    Resource("/d/a%20b%23", size=6, tag='"e1"', modified="today"),
]


def parsed(*pieces: bytes) -> list[Resource]:
    parser = MultistatusParser()
    for piece in pieces:
        parser.feed(piece)
    return parser.close()


def test_files_and_directories() -> None:
    assert parsed(RCLONE) == FOUND


@given(st.lists(st.integers(0, len(RCLONE)), max_size=5))
def test_it_arrives_in_any_pieces(ends: list[int]) -> None:
    bounds = [0, *sorted(ends), len(RCLONE)]
    assert parsed(*(RCLONE[a:b] for a, b in pairwise(bounds))) == FOUND


def test_what_is_refused_or_unknown() -> None:
    assert parsed(OTHER) == [Resource("http://h/d/x", status=403), Resource("/d/y", tag='"bare"')]


def test_weak_tags_keep_their_mark() -> None:
    assert parsed(RCLONE.replace(b'"e1"', b'W/"e1"'))[1].tag == 'W/"e1"'


def test_a_server_that_fails_in_the_middle_has_broken_off() -> None:
    with pytest.raises(BrokenOff, match="junk after document element"):
        parsed(RCLONE + b"Internal Server Error")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "no element found"),
        (b"<html><body>login</body></html>", "the element 'html', not multistatus"),
        (RCLONE[:-5], "XML: "),
        (b"<multistatus xmlns='DAV:'/><x/>", "junk after document element"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><multistatus xmlns="DAV:"/>', "a document type"),
        (b'<multistatus xmlns="DAV:"><response/></multistatus>', "without an address"),
        (b'<multistatus xmlns="DAV:"><response><href>' + b"x" * (MAX_TEXT + 1), "a value of more than"),
        (b'{"error": "json"}', "XML: "),
        (b"\xff\xfe\x00", "XML: "),
    ],
)
def test_what_is_no_multistatus_is_named(document: bytes, message: str) -> None:
    with pytest.raises(MultistatusError, match=message):
        parsed(document)
