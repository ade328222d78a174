"""Bodies of writes: cut into parts, and read in a thread where reading may block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import chain

from podferry.contract.errors import Refused
from podferry.storage.store import Body


def as_bytes(body: Body) -> bytes:
    """The body as one buffer."""
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else b"".join(body)


def parts_of(body: Body, size: int) -> Iterator[bytes]:
    """The body in parts of exactly `size` bytes, the last one shorter; none where the body is empty."""
    chunks = (body,) if isinstance(body, bytes | bytearray | memoryview) else body
    held = bytearray()
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            taken = size - len(held)
            held += view[:taken]
            view = view[taken:]
            if len(held) == size:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)


class BodySource:
    """A body on its way into an engine, in parts.

    Engines may wrap what a body raises; `failure` keeps the original, which the caller must get.
    """

    def __init__(self, body: Body, size: int, largest: int) -> None:
        self.failure: BaseException | None = None
        self._parts = parts_of(body, size)
        self._size = size
        self._left = largest // size
        self._stopped = False

    def stop(self) -> None:
        """Let the next part fail, so that the engine abandons the upload."""
        self._stopped = True

    def next_part(self) -> bytes:
        """The next part, empty at the end. Blocks while the body does."""
        try:
            return self._next_part()
        except BaseException as error:
            self.failure = error
            raise

    def _next_part(self) -> bytes:
        if self._stopped:
            raise InterruptedError("the upload was cancelled")
        part = next(self._parts, b"")
        self._left -= 1
        if part and self._left < 0:
            raise Refused.of(
                "an object is larger than an upload in parts can be",
                f"more than {self._size} bytes in each part",
                "Write it as several files",
            )
        return part

    async def begin(self) -> bytes | None:
        """The whole body, where it fits into less than a part; else None and `stream` has it all."""
        first = await asyncio.to_thread(self.next_part)
        if len(first) < self._size:
            return first
        self._parts = chain((first,), self._parts)
        self._left += 1
        return None

    async def stream(self) -> AsyncIterator[bytes]:
        """The parts; each is read in a thread."""
        while part := await asyncio.to_thread(self.next_part):
            yield part
