"""Where HTTP/1.1 messages begin and end: as much as a proxy must know to harm them at a chosen place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

CHUNK = 64 * 1024
"""Bytes passed on at once."""
NO_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class Head:
    """A request's or an answer's head.

    Attributes:
        raw: As it came, with the empty line.
        first: The first line's three parts.
        fields: By name in small letters.
    """

    raw: bytes
    first: tuple[str, str, str]
    fields: dict[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body; None where it is chunked, or ends with the connection."""
        if "chunked" in self.fields.get("transfer-encoding", ""):
            return None
        return int(self.fields["content-length"]) if "content-length" in self.fields else 0

    @property
    def method(self) -> str:
        """Of a request."""
        return self.first[0]

    @property
    def target(self) -> str:
        """Of a request: path and query."""
        return self.first[1]

    def bodiless(self, method: str) -> bool:
        """Whether this answer has no body, whatever its fields say."""
        status = int(self.first[1])
        return method == "HEAD" or status in NO_BODY or status < 200


def parse_head(raw: bytes) -> Head:
    """Read a head.

    Raises:
        ValueError: It is none.
    """
    lines = raw.decode("latin-1").split("\r\n")
    first, _, rest = lines[0].partition(" ")
    second, _, third = rest.partition(" ")
    fields = dict(line.split(":", 1) for line in lines[1:] if line)
    return Head(raw, (first, second, third), {name.lower(): text.strip() for name, text in fields.items()})


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head, None where the peer has closed."""
    try:
        return parse_head(await reader.readuntil(b"\r\n\r\n"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def body(reader: asyncio.StreamReader, length: int | None) -> AsyncGenerator[bytes]:
    """The bytes of a body as they are on the wire, chunk by chunk.

    Raises:
        asyncio.IncompleteReadError: It ends early.
    """
    if length is None:
        async with aclosing(_chunked(reader)) as pieces:
            async for piece in pieces:
                yield piece
        return
    while length:
        piece = await reader.read(min(CHUNK, length))
        if not piece:
            raise asyncio.IncompleteReadError(b"", length)
        length -= len(piece)
        yield piece


async def _chunked(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line
        size = int(line.split(b";")[0], 16)
        yield await reader.readexactly(size + 2)
        if not size:
            return


def answer(status: int, code: str, method: str) -> bytes:
    """A store's error as S3 words it."""
    text = (
        b"" if method == "HEAD" else f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    )
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text
