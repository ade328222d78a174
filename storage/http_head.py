"""Reads the head of a response, and takes only what is plain beyond doubt. Pure.

A lean lane may refuse what it does not know: whatever is unusual is given to the store's own client. So this
is no HTTP parser: it knows one shape of answer (RFC 9112, sections 4 to 6) and names the first thing that
is otherwise.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from podferry.contract.manifest import Entry

LONGEST = 16 * 1024
"""Bytes of a head; nginx and S3 keep theirs below 8 KiB."""
END = b"\r\n\r\n"
PLAIN = frozenset({b"HTTP/1.1 200", b"HTTP/1.1 206"})
SLOW = frozenset({b"HTTP/1.1 429", b"HTTP/1.1 503"})
"""RFC 6585, section 4, and S3's SlowDown."""
MATTER = frozenset(
    {b"content-length", b"content-range", b"content-encoding", b"transfer-encoding", b"connection"}
)
"""Fields that say how an answer is to be read; coming twice they may contradict themselves."""
STORED = frozenset({b"identity", b"", b"aws-chunked"})
"""Codings of bytes that come as they lie there: S3 keeps what their uploader declared of the way."""
SHAPE = re.compile(rb"HTTP/1\.1 \d{3}(?: [^\r\n\0]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*)+")
"""A head as RFC 9112 has it, without folded lines: what ends a line for one reader alone makes two of one."""


class Unusual(Exception):
    """The answer is none that the lane takes.

    Attributes:
        slow: Whether the server asks for fewer requests.
    """

    def __init__(self, why: str, *, slow: bool = False) -> None:
        super().__init__(why)
        self.slow = slow


class Head(msgspec.Struct, frozen=True, gc=False):
    """A plain answer to what was asked.

    Attributes:
        body: Offset of the first byte behind the head.
        raw: The head as it came, without the empty line that ends it.
        last: Whether the server closes the connection behind this answer.
    """

    body: int
    raw: bytes
    last: bool


def read_head(
    received: bytearray, count: int, entry: Entry, start: int, length: int, tag_field: bytes = b"etag"
) -> Head | None:
    """The head of an answer, None while it is not all there.

    Args:
        received: Holds the answer from its first byte on.
        count: How many bytes of it have come.
        entry: What was asked for.
        start: Of the range that was asked for, bytes.
        length: Of it; all of the object counts as no range.
        tag_field: See `podferry.storage.requests.Origin`.

    Raises:
        Unusual: It is not the plain answer to that.
    """
    end = received.find(END, 0, count)
    if end > LONGEST or (end < 0 and count > LONGEST):
        raise Unusual(f"a head of more than {LONGEST} bytes")
    if end < 0:
        return None
    raw = bytes(received[:end])
    if SHAPE.fullmatch(raw) is None:
        raise Unusual(f"the head {_shown(raw)}")
    status = raw[: raw.find(b"\r\n")]
    if status[:12] not in PLAIN or status[12:13] not in {b" ", b""}:
        raise Unusual(_shown(status), slow=status[:12] in SLOW)
    fields = _fields(raw, tag_field)
    whole = start == 0 and length == entry.size
    _check_length(fields, length)
    _check_range(fields, status, entry, start, length, whole=whole)
    _check_coding(fields)
    if tag_field and entry.tag:
        tag = fields.get(tag_field, b"")
        if tag.strip(b'"') != entry.tag.strip('"').encode():
            raise Unusual(f"the tag {_shown(tag) or 'missing'}, {entry.tag} was listed")
    return Head(end + len(END), raw, fields.get(b"connection", b"").lower() == b"close")


def _fields(raw: bytes, tag_field: bytes) -> dict[bytes, bytes]:
    """Values of the fields that matter, by their names in lower case; one that comes twice is refused."""
    fields: dict[bytes, bytes] = {}
    for name, value in _matter(tag_field).findall(raw):
        known = name.lower()
        if known in fields:
            raise Unusual(f"{_shown(name)} twice")
        fields[known] = value.rstrip(b" \t")
    return fields


@lru_cache(maxsize=8)
def _matter(tag_field: bytes) -> re.Pattern[bytes]:
    """Finds fields in a head of the right shape; taking all lines apart takes half as long again."""
    names = b"|".join(map(re.escape, {*MATTER, tag_field} - {b""}))
    return re.compile(rb"\r\n(" + names + rb"):[ \t]*([^\r]*)", re.IGNORECASE)


def _check_length(fields: dict[bytes, bytes], length: int) -> None:
    stated = fields.get(b"content-length", b"")
    if b"transfer-encoding" in fields:
        raise Unusual("a transfer coding")
    if not stated.isdigit() or len(stated) > 19 or int(stated) != length:
        raise Unusual(f"Content-Length {_shown(stated) or 'missing'}, {length} were asked for")


def _check_range(
    fields: dict[bytes, bytes], status: bytes, entry: Entry, start: int, length: int, *, whole: bool
) -> None:
    if whole:
        if not status.startswith(b"HTTP/1.1 200"):
            raise Unusual("a part of what was asked for whole")
        return
    wanted = b"bytes %d-%d/%d" % (start, start + length - 1, entry.size)
    found = fields.get(b"content-range", b"")
    if not status.startswith(b"HTTP/1.1 206") or found != wanted:
        raise Unusual(f"Content-Range {_shown(found) or 'missing'}, {wanted.decode()} was asked for")


def _check_coding(fields: dict[bytes, bytes]) -> None:
    """A coding that the server may have added on the way."""
    coding = fields.get(b"content-encoding", b"identity").lower()
    if coding not in STORED:
        raise Unusual(f"Content-Encoding {_shown(coding)}")


def _shown(text: bytes) -> str:
    return repr(text[:80].decode("latin-1"))[1:-1]
