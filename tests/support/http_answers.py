"""Requests of ranges and the right responses to them, as bytes."""

from dataclasses import dataclass

TAG = '"tag"'
POISON = 0xEE
"""Not in any object of these tests."""
PATTERN = bytes(range(POISON - 1))
"""Of an odd length, so that no two ranges of a power of two are the same."""


@dataclass(frozen=True)
class Request:
    """A request, and the right response to it.

    Attributes:
        data: Bytes of the range.
        start: Of the range.
        size: Of the object.
        complete: Whether the complete object was requested.
    """

    data: bytes
    start: int
    size: int
    complete: bool

    @property
    def range(self):
        return f"bytes {self.start}-{self.start + len(self.data) - 1}/{self.size}"


@dataclass(frozen=True)
class Answer:
    """What goes over the wire.

    Attributes:
        data: All of it.
        then: `keep` the connection open, `close` it in order, `reset` it, or `hold` it without another byte.
    """

    data: bytes
    then: str = "keep"


def truth(number, start, length):
    """The bytes of an object's range: different for each object, and never poison."""
    first = (number + start) % len(PATTERN)
    return (PATTERN * (1 + length // len(PATTERN)) + PATTERN)[first : first + length]


def poison(count):
    return bytes([POISON]) * count


def head(request, *lines, status=None, length=None, ranged=True, tag=TAG):
    """The head of a plain answer, with further lines in front; None leaves a line out."""
    status = status or ("HTTP/1.1 200 OK" if request.complete else "HTTP/1.1 206 Partial Content")
    length = len(request.data) if length is None else length
    found = [status, *lines]
    found += [] if length == "" else [f"Content-Length: {length}"]
    found += [f"Content-Range: {request.range}"] if ranged and not request.complete else []
    found += [f"ETag: {tag}"] if tag else []
    return "\r\n".join(found).encode("latin-1") + b"\r\n\r\n"


def good(request, number):
    lines = ([], ["Server: x", "x-amz-id-2: "], ["X-Long: " + "y" * 9000], ["Date:Sat, 21 Nov 2026"])
    return Answer(head(request, *lines[number % len(lines)]) + request.data)
