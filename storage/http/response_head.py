"""Parses the head of a plain response and refuses every other.

The pool may refuse what it does not know, because the store's own client takes what it refuses. So this is
not an HTTP parser: it accepts one shape of response (RFC 9112, sections 4 to 6) and names the first
deviation. A server sends the same fields in the same order each time, so the shape of the last head is
cached, which halves the time to parse the next; the cache does not change what is accepted.
"""

from __future__ import annotations

import re

import msgspec

from podferry.contract.manifest import Entry

MAX_HEAD_BYTES = 16 * 1024
"""nginx and S3 keep their heads below 8 KiB."""
HEAD_END = b"\r\n\r\n"
PARTIAL_CONTENT = b"HTTP/1.1 206"
ACCEPTED = frozenset({b"HTTP/1.1 200", PARTIAL_CONTENT})
RATE_LIMITED = frozenset({b"HTTP/1.1 429", b"HTTP/1.1 503"})
"""RFC 6585, section 4, and S3's SlowDown."""
CONTENT_LENGTH, CONTENT_RANGE = b"content-length", b"content-range"
CONTENT_ENCODING, CONNECTION = b"content-encoding", b"connection"
FRAMING_FIELDS = frozenset({CONTENT_LENGTH, CONTENT_RANGE, CONTENT_ENCODING, CONNECTION})
"""Fields that decide how the body is read; a repeated one may contradict itself."""
UNENCODED = frozenset({b"identity", b"", b"aws-chunked"})
"""Encodings whose body is the stored bytes: S3 repeats what the uploader declared about its own transfer."""
FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""


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
        may_have_checksum: Whether a field may state one: see `podferry.storage.checksum.response_header`.
    """

    body_offset: int
    raw: bytes
    closes: bool
    may_have_checksum: bool


class HeadShape(msgspec.Struct, frozen=True):
    """What heads of one server have in common.

    Attributes:
        pattern: Matches the complete head; its groups `length`, `range` and `tag` are the values that vary
            and matter, empty if the field is missing.
        partial: Whether the status is 206.
        closes, may_have_checksum: See `ResponseHead`.
    """

    pattern: re.Pattern[bytes]
    partial: bool
    closes: bool
    may_have_checksum: bool


_last_shapes: dict[bytes, HeadShape] = {}
"""By `tag_field`."""


def read_head(
    buffer: bytearray, filled: int, entry: Entry, start: int, length: int, tag_field: bytes = b"etag"
) -> ResponseHead | None:
    """Parse the head of a response, or return None while it is incomplete.

    Args:
        buffer: Holds the response from its first byte on.
        filled: Bytes of it that have been received.
        entry: The requested object.
        start: Of the requested range, bytes.
        length: Of that range; a request for the complete object has no `Range`.
        tag_field: See `podferry.storage.request_builder.Origin`.

    Raises:
        UnexpectedResponse: It is not the plain response to that request.
    """
    end = buffer.find(HEAD_END, 0, filled)
    if end > MAX_HEAD_BYTES or (end < 0 and filled > MAX_HEAD_BYTES):
        raise UnexpectedResponse(f"a head of more than {MAX_HEAD_BYTES} bytes")
    if end < 0:
        return None
    raw = bytes(buffer[:end])
    # A lone CR or LF ends a line for some readers only: they would see other fields.
    if not raw.count(b"\r") == raw.count(b"\n") == raw.count(b"\r\n") or b"\0" in raw:
        raise UnexpectedResponse(f"the head {_printable(raw)}")
    shape = _last_shapes.get(tag_field)
    match = shape.pattern.fullmatch(raw) if shape is not None else None
    if shape is None or match is None:
        shape = _last_shapes[tag_field] = _parse_shape(raw, tag_field)
        match = shape.pattern.fullmatch(raw)
        assert match is not None  # noqa: S101 - the pattern was made from this head
    content_length, content_range, tag = match.group("length", "range", "tag")
    if content_length != b"%d" % length:
        raise UnexpectedResponse(
            f"Content-Length {_printable(content_length) or 'missing'}, {length} were requested"
        )
    _check_range(shape, content_range, entry, start, length)
    if tag_field and tag.strip(b'"') != entry.tag.strip('"').encode() and entry.tag:
        raise UnexpectedResponse(f"the tag {_printable(tag) or 'missing'}, {entry.tag} was listed")
    return ResponseHead(end + len(HEAD_END), raw, shape.closes, shape.may_have_checksum)


def _check_range(shape: HeadShape, content_range: bytes, entry: Entry, start: int, length: int) -> None:
    if start == 0 and length == entry.size:
        if shape.partial:
            raise UnexpectedResponse("206 to a request for the complete object")
        return
    expected = b"bytes %d-%d/%d" % (start, start + length - 1, entry.size)
    if not shape.partial or content_range != expected:
        raise UnexpectedResponse(
            f"Content-Range {_printable(content_range) or 'missing'}, {expected.decode()} was requested"
        )


def _parse_shape(raw: bytes, tag_field: bytes) -> HeadShape:
    """Parse a head line by line; later heads of its shape need not be.

    Raises:
        UnexpectedResponse: It is not plain.
    """
    status, *lines = raw.split(b"\r\n")
    if status[:12] not in ACCEPTED or status[12:13] not in {b" ", b""}:
        reason = _printable(status) or "an empty status line"
        raise UnexpectedResponse(reason, rate_limited=status[:12] in RATE_LIMITED)
    groups = {CONTENT_LENGTH: b"length", CONTENT_RANGE: b"range", tag_field: b"tag"}
    fields: dict[bytes, bytes] = {}
    patterns = [re.escape(status)]
    for line in lines:
        name, value = _parse_field(line)
        if name in fields and (name in FRAMING_FIELDS or name == tag_field):
            raise UnexpectedResponse(f"{_printable(name)} twice")
        fields[name] = value
        patterns.append(_line_pattern(line, groups.pop(name, b""), fixed=name in FRAMING_FIELDS))
    if b"transfer-encoding" in fields:
        raise UnexpectedResponse("a transfer coding")
    if fields.get(CONTENT_ENCODING, b"").lower() not in UNENCODED:
        raise UnexpectedResponse(f"Content-Encoding {_printable(fields[CONTENT_ENCODING])}")
    missing = b"".join(b"(?P<%s>)" % group for group in groups.values())
    may_have_checksum = any(name.startswith(b"x-") or name == b"content-md5" for name in fields)
    closes = fields.get(CONNECTION, b"").lower() == b"close"
    pattern = re.compile(rb"\r\n".join(patterns) + missing)
    return HeadShape(pattern, status.startswith(PARTIAL_CONTENT), closes, may_have_checksum)


def _parse_field(line: bytes) -> tuple[bytes, bytes]:
    """A field's name in lower case, and its value."""
    name, colon, value = line.partition(b":")
    if not colon or not FIELD_NAME.fullmatch(name):
        raise UnexpectedResponse(f"the line {_printable(line)}")
    return name.lower(), value.strip(b" \t")


def _line_pattern(line: bytes, group: bytes, *, fixed: bool) -> bytes:
    """Match lines like `line`.

    Args:
        line: One of them.
        group: Name of the group that captures the value, or empty.
        fixed: Without a group: whether the value is part of the shape, as it decides how the body is read.
    """
    if fixed and not group:
        return re.escape(line)
    name = re.escape(line.partition(b":")[0])
    return name + (rb":[ \t]*+(?P<%s>[^\r]*+)" % group if group else rb":[^\r]*+")


def _printable(text: bytes) -> str:
    return repr(text[:80].decode("latin-1"))[1:-1]
