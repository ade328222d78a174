"""Reads the head of a response, and takes only what is plain beyond doubt.

A lean lane may refuse what it does not know: whatever is unusual is given to the store's own client. So this
is no HTTP parser: it knows one shape of answer (RFC 9112, sections 4 to 6) and names the first thing that
is otherwise. A server sends the same fields in the same order each time, so the last head's shape is kept,
and reads the next one in half of the time; what is taken does not depend on it.
"""

from __future__ import annotations

import re

import msgspec

from podferry.contract.manifest import Entry

MAX_HEAD_BYTES = 16 * 1024
"""Bytes of a head; nginx and S3 keep theirs below 8 KiB."""
END = b"\r\n\r\n"
PARTIAL = b"HTTP/1.1 206"
PLAIN = frozenset({b"HTTP/1.1 200", PARTIAL})
SLOW = frozenset({b"HTTP/1.1 429", b"HTTP/1.1 503"})
"""RFC 6585, section 4, and S3's SlowDown."""
LENGTH, RANGE = b"content-length", b"content-range"
CODING, CONNECTION = b"content-encoding", b"connection"
MATTER = frozenset({LENGTH, RANGE, CODING, CONNECTION})
"""Fields that say how an answer is to be read; coming twice they may contradict themselves."""
STORED = frozenset({b"identity", b"", b"aws-chunked"})
"""Codings of bytes that come as they lie there: S3 keeps what their uploader declared of the way."""
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A field's name, RFC 9110, 5.6.2."""


class UnexpectedResponse(Exception):
    """The answer is none that the lane takes.

    Attributes:
        slow: Whether the server asks for fewer requests.
    """

    def __init__(self, why: str, *, slow: bool = False) -> None:
        super().__init__(why)
        self.slow = slow


class ResponseHead(msgspec.Struct, frozen=True, gc=False):
    """A plain answer to what was asked.

    Attributes:
        body: Offset of the first byte behind the head.
        raw: The head as it came, without the empty line that ends it.
        last: Whether the server closes the connection behind this answer.
        states: Whether a field may state a checksum: see `podferry.storage.checksum.response_header`.
    """

    body: int
    raw: bytes
    last: bool
    states: bool


class HeadShape(msgspec.Struct, frozen=True):
    """What heads of one kind have in common.

    Attributes:
        pattern: All lines of a head; its groups are what differs and matters, empty where it is missing:
            length, range and tag.
        partial: Whether the status is 206.
        last: See `ResponseHead`, as `states`.
    """

    pattern: re.Pattern[bytes]
    partial: bool
    last: bool
    states: bool


_shapes: dict[bytes, HeadShape] = {}
"""The last head's, by `tag_field`."""


def read_head(
    received: bytearray, count: int, entry: Entry, start: int, length: int, tag_field: bytes = b"etag"
) -> ResponseHead | None:
    """The head of an answer, None while it is not all there.

    Args:
        received: Holds the answer from its first byte on.
        count: How many bytes of it have come.
        entry: What was asked for.
        start: Of the range that was asked for, bytes.
        length: Of it; all of the object counts as no range.
        tag_field: See `podferry.storage.request_builder.Origin`.

    Raises:
        UnexpectedResponse: It is not the plain answer to that.
    """
    end = received.find(END, 0, count)
    if end > MAX_HEAD_BYTES or (end < 0 and count > MAX_HEAD_BYTES):
        raise UnexpectedResponse(f"a head of more than {MAX_HEAD_BYTES} bytes")
    if end < 0:
        return None
    raw = bytes(received[:end])
    # What ends a line for one reader alone makes two of one.
    if not raw.count(b"\r") == raw.count(b"\n") == raw.count(b"\r\n") or b"\0" in raw:
        raise UnexpectedResponse(f"the head {_shown(raw)}")
    shape = _shapes.get(tag_field)
    found = shape.pattern.fullmatch(raw) if shape is not None else None
    if shape is None or found is None:
        shape = _shapes[tag_field] = _shape(raw, tag_field)
        found = shape.pattern.fullmatch(raw)
        assert found is not None  # noqa: S101 - it was made of this head
    stated, ranged, tag = found.group("length", "range", "tag")
    if stated != b"%d" % length:
        raise UnexpectedResponse(f"Content-Length {_shown(stated) or 'missing'}, {length} were asked for")
    _check_range(shape, ranged, entry, start, length)
    if tag_field and tag.strip(b'"') != entry.tag.strip('"').encode() and entry.tag:
        raise UnexpectedResponse(f"the tag {_shown(tag) or 'missing'}, {entry.tag} was listed")
    return ResponseHead(end + len(END), raw, shape.last, shape.states)


def _check_range(shape: HeadShape, found: bytes, entry: Entry, start: int, length: int) -> None:
    if start == 0 and length == entry.size:
        if shape.partial:
            raise UnexpectedResponse("a part of what was asked for whole")
        return
    wanted = b"bytes %d-%d/%d" % (start, start + length - 1, entry.size)
    if not shape.partial or found != wanted:
        raise UnexpectedResponse(
            f"Content-Range {_shown(found) or 'missing'}, {wanted.decode()} was asked for"
        )


def _shape(raw: bytes, tag_field: bytes) -> HeadShape:
    """Read a head line by line; heads of its shape need not be read so again.

    Raises:
        UnexpectedResponse: It is not plain.
    """
    status, *lines = raw.split(b"\r\n")
    if status[:12] not in PLAIN or status[12:13] not in {b" ", b""}:
        raise UnexpectedResponse(_shown(status) or "an empty status line", slow=status[:12] in SLOW)
    groups = {LENGTH: b"length", RANGE: b"range", tag_field: b"tag"}
    fields: dict[bytes, bytes] = {}
    pattern = [re.escape(status)]
    for line in lines:
        name, value = _field(line)
        if name in fields and (name in MATTER or name == tag_field):
            raise UnexpectedResponse(f"{_shown(name)} twice")
        fields[name] = value
        pattern.append(_pattern(line, groups.pop(name, b""), whole=name in MATTER))
    if b"transfer-encoding" in fields:
        raise UnexpectedResponse("a transfer coding")
    if fields.get(CODING, b"").lower() not in STORED:
        raise UnexpectedResponse(f"Content-Encoding {_shown(fields[CODING])}")
    missing = b"".join(b"(?P<%s>)" % group for group in groups.values())
    states = any(name.startswith(b"x-") or name == b"content-md5" for name in fields)
    last = fields.get(CONNECTION, b"").lower() == b"close"
    return HeadShape(re.compile(rb"\r\n".join(pattern) + missing), status.startswith(PARTIAL), last, states)


def _field(line: bytes) -> tuple[bytes, bytes]:
    """A field's name in lower case, and its value."""
    name, colon, value = line.partition(b":")
    if not colon or not TOKEN.fullmatch(name):
        raise UnexpectedResponse(f"the line {_shown(line)}")
    return name.lower(), value.strip(b" \t")


def _pattern(line: bytes, group: bytes, *, whole: bool) -> bytes:
    """What lines like this look like.

    Args:
        line: One of them.
        group: What its value becomes, if anything.
        whole: Otherwise, whether the value belongs to the shape: it decides how the answer is read.
    """
    if whole and not group:
        return re.escape(line)
    name = re.escape(line.partition(b":")[0])
    return name + (rb":[ \t]*+(?P<%s>[^\r]*+)" % group if group else rb":[^\r]*+")


def _shown(text: bytes) -> str:
    return repr(text[:80].decode("latin-1"))[1:-1]
