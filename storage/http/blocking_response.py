"""Reads responses from a blocking connection; `http.client` imports 8 ms of what mail needs.

No general reader: what is not in the form of RFC 9112 is refused, and left to the general client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedReader

from podferry.contract.lazy_pattern import lazy_pattern

MAX_LINE_BYTES = 64 * 1024
"""Of a head: proxies before a server add fields of their own, such as policies of 20 KiB."""
MAX_GREETING = 100
"""Characters of another protocol that are shown."""
MAX_FIELDS = 200
"""Of a head: servers send about 20."""
STATUS_LINE = lazy_pattern(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?\r?\n")
FIELD_LINE = lazy_pattern(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*\r?\n")
"""A name (RFC 9110, section 5.6.2) and a value."""
CHUNK_LINE = lazy_pattern(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
LENGTH = lazy_pattern(r"\d{1,18}")
WITHOUT_BODY = (204, 304)
FIRST_FINAL = 200
"""Responses below are informational, and the final one follows. Source: RFC 9110, section 15.2."""


class BadResponse(OSError):
    """The server responds with something else than a plain response."""


class ForeignGreeting(BadResponse):
    """The server does not speak HTTP, such as one of SSH or FTP.

    Attributes:
        greeting: What it says, read by `podferry.storage.errors.vendor_fields`.
    """

    def __init__(self, greeting: str) -> None:
        super().__init__(f"no response of HTTP: {greeting!r}")
        self.greeting = greeting


class CutBody(BadResponse):
    """The connection ends before the body."""


class Fields(Mapping[str, str]):
    """Header fields: the first value of each, by case-insensitive name."""

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in lines:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self._values.get(name.lower(), [])


class BlockingResponse:
    """The final response to a GET request. Reading blocks.

    Attributes:
        status: Of HTTP.
        headers: Its fields.
        length: Bytes of the body that are still to be read; None if the head does not state it.
        chunked: Whether the body states its own end.
        is_reusable: Whether the body has been read and the connection may be used again.

    Raises:
        BadResponse: It is not plain.
        ConnectionResetError: The server has closed the connection without a byte.
        OSError: The connection failed, or the time for it is over.
    """

    def __init__(self, reader: BufferedReader) -> None:
        self._reader = reader
        minor, self.status = _status(reader)
        while self.status < FIRST_FINAL:
            _fields(reader)
            minor, self.status = _status(reader)
        self.headers = _fields(reader)
        self.chunked = self._is_chunked()
        self.length = None if self.chunked else self._stated_length()
        options = {option.strip() for option in ",".join(self.headers.all("Connection")).lower().split(",")}
        self._keeps = (b"keep-alive" if minor == b"0" else b"close").decode() in options
        self._keeps = self._keeps if minor == b"0" else not self._keeps
        self._chunk, self._has_ended = 0, self.length == 0

    @property
    def is_reusable(self) -> bool:
        """See the class."""
        return self._has_ended and self._keeps

    def _is_chunked(self) -> bool:
        codings = [coding.strip().lower() for coding in self.headers.all("Transfer-Encoding")]
        if codings not in ([], ["chunked"]):
            raise BadResponse(f"Transfer-Encoding: {', '.join(codings)}")
        return bool(codings) and self.status not in WITHOUT_BODY

    def _stated_length(self) -> int | None:
        if self.status in WITHOUT_BODY:
            return 0
        stated = set(self.headers.all("Content-Length"))
        if not stated:
            return None
        if len(stated) > 1 or not LENGTH.fullmatch(found := stated.pop()):
            raise BadResponse("Content-Length is no length")
        return int(found)

    def read(self, max_bytes: int) -> bytes:
        """At most so many bytes of the body, fewer only at its end.

        Raises:
            CutBody: The connection ends before it.
            BadResponse: Its chunks are malformed.
        """
        parts = list[bytes]()
        while max_bytes and (data := self.read_some(max_bytes)):
            parts.append(data)
            max_bytes -= len(data)
        return b"".join(parts)

    def read_some(self, max_bytes: int) -> bytes:
        """As `read`, but what has arrived; empty at the end of the body."""
        if self.chunked and not self._chunk and not self._has_ended:
            self._begin_chunk()
        if self._has_ended:
            return b""
        stated = self._chunk if self.chunked else self.length
        data = self._reader.read1(max_bytes if stated is None else min(max_bytes, stated))
        if not data and stated is not None:
            raise CutBody("the response is cut")
        if self.chunked:
            self._chunk -= len(data)
            if not self._chunk and self._line() not in {b"\r\n", b"\n"}:
                raise BadResponse("a chunk has another length than stated")
        elif self.length is None:
            self._has_ended, self._keeps = not data, False
        else:
            self.length -= len(data)
            self._has_ended = not self.length
        return data

    def _begin_chunk(self) -> None:
        found = CHUNK_LINE.fullmatch(self._line())
        if not found:
            raise BadResponse("the length of a chunk is missing")
        self._chunk = int(found[1], 16)
        if not self._chunk:
            _fields(self._reader)  # the trailer
            self._has_ended = True

    def _line(self) -> bytes:
        line = self._reader.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise CutBody("the response is cut")
        return line


def _status(reader: BufferedReader) -> tuple[bytes, int]:
    """Minor version and status."""
    line = reader.readline(MAX_LINE_BYTES)
    if not line:
        raise ConnectionResetError("the server has closed the connection without a response")
    found = STATUS_LINE.fullmatch(line)
    if not found:
        raise _other_protocol(line)
    return found[1], int(found[2])


def _other_protocol(line: bytes) -> BadResponse:
    """The error for a first line that is none of HTTP/1.1. A TLS alert is no text."""
    said = line[:MAX_GREETING].decode("latin-1").rstrip()
    is_foreign = said and said.isascii() and said.isprintable() and not said.startswith("HTTP")
    return ForeignGreeting(said) if is_foreign else BadResponse("no response of HTTP/1.1")


def _fields(reader: BufferedReader) -> Fields:
    lines = list[tuple[str, str]]()
    while (line := reader.readline(MAX_LINE_BYTES)) not in {b"\r\n", b"\n"}:
        found = FIELD_LINE.fullmatch(line)
        if not found or len(lines) == MAX_FIELDS:
            raise BadResponse("the head of the response is malformed or too long")
        lines.append((found[1].decode(), found[2].decode("latin-1")))
    return Fields(lines)
