"""What a web server responds with about a file."""

from __future__ import annotations

from typing import NamedTuple

UNENCODED = frozenset({"identity", ""})
"""Values of Content-Encoding: the body has the bytes of the file."""


COMPLETE = (200, 203)
"""Statuses of a response with a file. Others below 300 have none, such as 204, or not all of it."""


class FileInfo(NamedTuple):
    """A file, by the head of a response.

    Attributes:
        size: Bytes; None if the server does not state it.
        tag: See `podferry.storage.http.last_modified.tag_of`.
        kind: Its Content-Type, or empty.
        address: Its URL, after redirections.
        status: Of HTTP.
        is_directory: Whether the address shows a directory.
    """

    size: int | None
    tag: str
    kind: str
    address: str
    status: int
    is_directory: bool = False


class WebResponse(NamedTuple):
    """A response with bytes of a file.

    Attributes:
        status: Of HTTP.
        kind: Its Content-Type.
        content_range: Its Content-Range, or empty.
        body: Complete.
    """

    status: int
    kind: str
    content_range: str
    body: bytes

    def __str__(self) -> str:
        stated = f"Content-Range {self.content_range}" if self.content_range else "no Content-Range"
        return f"HTTP {self.status}, {self.kind or 'no type'}, {stated}, {len(self.body)} bytes"
