"""Cuts what arrives into frames: each has its length before it. Source: MS-SMB2 section 2.1."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.storage.smb.messages import HEADER, MAGIC
from podferry.storage.smb.nt_status import ProtocolError

BUFFER_BYTES = 256 * 1024
"""For frames of small files. A larger frame gets a buffer of its own, which its reader keeps."""
MAX_FRAME_BYTES = (1 << 24) - 1
"""The most that the length before a frame can say."""
MAX_FREE = 16
"""Buffers of large frames that wait for the next one: zeros in a new one take as long as a copy."""
LENGTH = 4
"""Bytes of the length before a frame."""


def chained(frame: memoryview) -> Iterator[memoryview]:
    """The responses in a frame: each says where the next one begins.

    Raises:
        ProtocolError: One is no message of SMB 2, or says something else.
    """
    following = 1
    while following:
        if len(frame) < HEADER.size or frame[:4] != MAGIC:
            raise ProtocolError("the server does not speak SMB 2")
        following = int.from_bytes(frame[20:24], "little")
        if following and not HEADER.size <= following < len(frame):
            raise ProtocolError("a chain of responses is broken")
        yield frame[:following] if following else frame
        frame = frame[following:]


class FrameBuffer:
    """Where a connection's bytes arrive. A large frame arrives where it stays: nothing copies it."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._large: memoryview | None = None
        self._filled = 0
        self._free: list[bytearray] = []

    def reuse(self, frame: memoryview) -> None:
        """Take the buffer of a large frame back, which nothing reads any more, for another one."""
        buffer = frame.obj
        if isinstance(buffer, bytearray) and len(buffer) > BUFFER_BYTES and len(self._free) < MAX_FREE:
            self._free.append(buffer)

    def space(self) -> memoryview:
        """Where the next bytes go."""
        return (self._buffer if self._large is None else self._large)[self._filled :]

    def arrived(self, count: int) -> Iterator[memoryview]:
        """The frames that are complete with these bytes.

        Raises:
            ProtocolError: What arrives are no frames of SMB 2.
        """
        self._filled += count
        if self._large is None:
            yield from self._small_frames()
        elif self._filled == len(self._large):
            frame, self._large, self._filled = self._large, None, 0
            yield frame

    def _small_frames(self) -> Iterator[memoryview]:
        start = 0
        while self._filled - start >= LENGTH:
            length = int.from_bytes(self._buffer[start : start + LENGTH], "big")
            if not HEADER.size <= length <= MAX_FRAME_BYTES:
                raise ProtocolError("the server does not speak SMB 2")
            begin, end = start + LENGTH, start + LENGTH + length
            if end > self._filled:
                if LENGTH + length > BUFFER_BYTES:
                    self._continue_in_own_buffer(begin, length)
                    return
                break
            yield memoryview(bytearray(self._buffer[begin:end]))
            start = end
        rest = self._filled - start
        if start and rest:
            self._buffer[:rest] = bytes(self._buffer[start : self._filled])
        self._filled = rest

    def _continue_in_own_buffer(self, begin: int, length: int) -> None:
        """Prepare for the rest of a large frame."""
        fitting = next((index for index, free in enumerate(self._free) if len(free) >= length), None)
        buffer = self._free.pop(fitting) if fitting is not None else bytearray(length)
        self._large = memoryview(buffer)[:length]
        arrived = self._filled - begin
        self._large[:arrived] = self._buffer[begin : self._filled]
        self._filled = arrived
