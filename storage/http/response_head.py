"""Parses the head of a plain response and refuses every other.

The pool may refuse what it does not know, because the store's own client takes what it refuses. So this is
not an HTTP parser: it accepts one shape of response (RFC 9112, sections 4 to 6) and names the first
deviation. Fields come in any order: some servers write them in a new one each time.
"""

from __future__ import annotations

import re
from mmap import mmap

import msgspec

from podferry.contract.manifest import Entry
from podferry.storage.http.last_modified import is_date_tag

MAX_HEAD_BYTES = 16 * 1024
"""nginx and S3 keep their heads below 8 KiB."""
HEAD_END = b"\r\n\r\n"
BLANKS = b" \t"
PARTIAL_CONTENT = b"HTTP/1.1 206"
ACCEPTED = frozenset({b"HTTP/1.1 200", PARTIAL_CONTENT})
AFTER_STATUS_CODE = frozenset({b" ", b"\r", b""})
RATE_LIMITED = frozenset({b"HTTP/1.1 429", b"HTTP/1.1 503"})
"""RFC 6585, section 4, and S3's SlowDown."""
CONTENT_LENGTH, CONTENT_RANGE = b"content-length", b"content-range"
LAST_MODIFIED = b"last-modified"
CONTENT_ENCODING, CONNECTION = b"content-encoding", b"connection"
TRANSFER_ENCODING = b"transfer-encoding"
FRAMING_FIELDS = frozenset({CONTENT_LENGTH, CONTENT_RANGE, CONTENT_ENCODING, CONNECTION})
"""Fields that decide how the body is read; a repeated one may contradict itself."""
UNENCODED = frozenset({b"identity", b"", b"aws-chunked"})
"""Encodings whose body is the stored bytes: S3 repeats what the uploader declared about its own transfer."""
FIELD_LINE = re.compile(rb"\r\n([!#$%&'*+.^_`|~0-9A-Za-z-]++):[ \t]*+([^\r]*+)")
"""A line end, a name (RFC 9110, section 5.6.2) and a value. Possessive, so that no head is expensive."""


class UnexpectedResponse(Exception):
    """The response is not one that the pool accepts.

    Attributes:
        rate_limited: Whether the server asks for fewer requests.
    """

    def __init__(self, reason: str, *, rate_limited: bool = False) -> None:
        super().__init__(reason)
        self.rate_limited = rate_limited


class ResponseHead(msgspec.Struct, frozen=True, gc=False):
    """An accepted response to a request.

    Attributes:
        body_offset: Offset of the first byte after the head.
        raw: The head, without the empty line that ends it.
        closes: Whether the server closes the connection after this response.
    """

    body_offset: int
    raw: bytes
    closes: bool


def read_head(
    buffer: bytearray | mmap,
    filled: int,
    entry: Entry,
    start: int,
    length: int,
    tag_field: bytes = b"etag",
    ranges_in_address: bool = False,
) -> ResponseHead | None:
    """Parse the head of a response, or return None while it is incomplete.

    Args:
        buffer: Holds the response from its first byte on.
        filled: Bytes of it that have been received.
        entry: The requested object.
        start: Of the requested range, bytes.
        length: Of that range; a request for the complete object has no `Range`.
        tag_field: See `podferry.storage.request_builder.Origin`.
        ranges_in_address: See there.

    Raises:
        UnexpectedResponse: It is not the plain response to that request.
    """
    end = buffer.find(HEAD_END, 0, filled)
    if end > MAX_HEAD_BYTES or (end < 0 and filled > MAX_HEAD_BYTES):
        raise UnexpectedResponse(f"a head of more than {MAX_HEAD_BYTES} bytes")
    if end < 0:
        return None
    raw = bytes(buffer[:end])
    fields = parse_fields(raw, tag_field)
    content_length = fields.get(CONTENT_LENGTH, b"").rstrip(BLANKS)
    if content_length != b"%d" % length:
        raise UnexpectedResponse(
            f"Content-Length {_printable(content_length) or 'missing'}, {length} were requested"
        )
    is_complete = ranges_in_address or (start == 0 and length == entry.size)
    _check_range(raw, fields.get(CONTENT_RANGE, b"").rstrip(BLANKS), entry, start, length, is_complete)
    tag = fields.get(LAST_MODIFIED if is_date_tag(entry.tag) else tag_field, b"").rstrip(BLANKS)
    if tag_field and entry.tag and tag.strip(b'"') != entry.tag.strip('"').encode():
        raise UnexpectedResponse(f"the tag {_printable(tag) or 'missing'}, {entry.tag} was listed")
    closes = fields.get(CONNECTION, b"").rstrip(BLANKS).lower() == b"close"
    return ResponseHead(end + len(HEAD_END), raw, closes)


def parse_fields(raw: bytes, tag_field: bytes) -> dict[bytes, bytes]:
    """The fields of a plain head: values by lower-case name.

    Raises:
        UnexpectedResponse: It is not plain, or a field that matters is repeated.
    """
    line_ends = raw.count(b"\r\n")
    # A lone CR or LF ends a line for some readers only: they would see other fields.
    if not raw.count(b"\r") == raw.count(b"\n") == line_ends or b"\0" in raw:
        raise UnexpectedResponse(f"the head {_printable(raw)}")
    if raw[:12] not in ACCEPTED or raw[12:13] not in AFTER_STATUS_CODE:
        reason = _printable(raw.partition(b"\r\n")[0]) or "an empty status line"
        raise UnexpectedResponse(reason, rate_limited=raw[:12] in RATE_LIMITED)
    lines = FIELD_LINE.findall(raw)
    if len(lines) != line_ends:  # each match has one line end
        raise UnexpectedResponse(f"the line {_printable(_malformed_line(raw))}")
    fields = {name.lower(): value for name, value in lines}
    if len(fields) != len(lines):
        _refuse_repeated([name.lower() for name, _ in lines], tag_field)
    if TRANSFER_ENCODING in fields:
        raise UnexpectedResponse("a transfer coding")
    if fields.get(CONTENT_ENCODING, b"").rstrip(BLANKS).lower() not in UNENCODED:
        raise UnexpectedResponse(f"Content-Encoding {_printable(fields[CONTENT_ENCODING])}")
    return fields


def _malformed_line(raw: bytes) -> bytes:
    return next(line for line in raw.split(b"\r\n")[1:] if not FIELD_LINE.fullmatch(b"\r\n" + line))


def _refuse_repeated(names: list[bytes], tag_field: bytes) -> None:
    for name in (*FRAMING_FIELDS, tag_field):
        if names.count(name) > 1:
            raise UnexpectedResponse(f"{_printable(name)} twice")


def _check_range(
    raw: bytes, content_range: bytes, entry: Entry, start: int, length: int, is_complete: bool
) -> None:
    partial = raw.startswith(PARTIAL_CONTENT)
    if is_complete:
        if partial:
            raise UnexpectedResponse("206 to a request for the complete object")
        return
    expected = b"bytes %d-%d/%d" % (start, start + length - 1, entry.size)
    if not partial or content_range != expected:
        raise UnexpectedResponse(
            f"Content-Range {_printable(content_range) or 'missing'}, {expected.decode()} was requested"
        )


def _printable(text: bytes) -> str:
    return repr(text[:80].decode("latin-1"))[1:-1]
