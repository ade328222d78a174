"""Messages that are not true: pure functions over heads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from faults.messages import Head, parse_head

LONGER = 1000
"""Bytes that an answer promises and does not send."""
LENGTH = re.compile(rb"(?i)(\r\ncontent-length: *)(\d+)")
RANGE = re.compile(rb"(?i)\r\nrange:[^\r]*")
SIGNED_RANGE = re.compile(r"SignedHeaders=[^,]*\brange\b")


def _with_length(head: Head, length: int) -> Head:
    return parse_head(LENGTH.sub(rb"\g<1>%d" % length, head.raw, count=1))


def longer(head: Head) -> Head:
    """An answer that promises more than it sends."""
    return _with_length(head, (head.length or 0) + LONGER)


def shorter(head: Head) -> Head:
    """An answer that sends more than it promises: what follows is not a message."""
    return _with_length(head, (head.length or 0) // 2)


def without_range(head: Head) -> Head:
    """A request for all of an object, where a range was asked for."""
    return parse_head(RANGE.sub(b"", head.raw))


def has_free_range(head: Head) -> bool:
    """Whether a request asks for a range, and its signature would still be right without it."""
    return "range" in head.fields and not SIGNED_RANGE.search(head.fields.get("authorization", ""))


ANSWERS: Mapping[str, Callable[[Head], Head]] = {"length too long": longer, "length too short": shorter}
REQUESTS: Mapping[str, Callable[[Head], Head]] = {"range ignored": without_range}
EXPLAINED: Mapping[str, str] = {
    "length too long": "an answer promises more bytes than come, and then the connection ends",
    "length too short": "an answer promises half of the bytes that come, on a connection that stays",
    "range ignored": "a request for a range is answered with the whole object",
}
