"""The body of a write: split into parts, and read in a thread if reading may block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import chain

from podferry.contract.errors import Refused
from podferry.storage.store import Body


def as_bytes(body: Body) -> bytes:
    """The body as one buffer."""
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else b"".join(body)


def parts_of(body: Body, size: int) -> Iterator[bytes]:
    """Split the body into parts of exactly `size` bytes, the last one shorter; an empty body has none."""
    chunks = (body,) if isinstance(body, bytes | bytearray | memoryview) else body
    part = bytearray()
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            missing = size - len(part)
            part += rest[:missing]
            rest = rest[missing:]
            if len(part) == size:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)


class BodySource:
    """A body that an engine uploads in parts.

    Engines may wrap what a body raises; `failure` keeps the original, which the caller must get.
    """

    def __init__(self, body: Body, part_bytes: int, max_bytes: int) -> None:
        self.failure: BaseException | None = None
        self._parts = parts_of(body, part_bytes)
        self._part_bytes = part_bytes
        self._parts_left = max_bytes // part_bytes
        self._stopped = False

    def stop(self) -> None:
        """Make the next part fail, so that the engine abandons the upload."""
        self._stopped = True

    async def finish(self, upload: asyncio.Future[None]) -> None:
        """Wait for an upload of this body; raise what the body raised as it is.

        A cancellation stops the body, so that the engine abandons the upload.
        """
        try:
            await asyncio.shield(upload)
        except asyncio.CancelledError:
            self.stop()
            with suppress(Exception):  # the caller gets the cancellation
                await upload
            raise
        except BaseException:
            if self.failure is not None:
                raise self.failure from None
            raise
        finally:
            # A failure's traceback holds this frame, and the task the failure: a cycle that keeps the body.
            del upload

    def next_part(self) -> bytes:
        """The next part, or empty at the end. Blocks while the body does."""
        try:
            return self._next_part()
        except BaseException as error:
            self.failure = error
            raise

    def _next_part(self) -> bytes:
        if self._stopped:
            raise InterruptedError("the upload was cancelled")
        part = next(self._parts, b"")
        self._parts_left -= 1
        if part and self._parts_left < 0:
            measured = f"more than {self._part_bytes} bytes in each part"
            what = "an object is larger than an upload in parts can be"
            raise Refused.of(what, measured, "Write it as several files")
        return part

    async def read_small(self) -> bytes | None:
        """The complete body if it is shorter than one part; otherwise None, and `stream` yields all of it."""
        first = await asyncio.to_thread(self.next_part)
        if len(first) < self._part_bytes:
            return first
        self._parts = chain((first,), self._parts)
        self._parts_left += 1
        return None

    async def stream(self) -> AsyncIterator[bytes]:
        """The parts; each is read in a thread."""
        while part := await asyncio.to_thread(self.next_part):
            yield part
