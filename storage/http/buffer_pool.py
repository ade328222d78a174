"""Receive buffers that connections take over from closed ones: some servers close after every response."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

BUFFER_BYTES = 256 * 1024
"""Holds a small object with its head, or one chunk of a large one, which stays in the processor's cache
between the network and the file."""


class BufferPool:
    """Buffers of `BUFFER_BYTES` each. There are never more than there were connections at once.

    Mapped, not allocated: a `bytearray` would be zeroed, and small objects need a fraction of it.
    """

    def __init__(self) -> None:
        self._free: list[mmap] = []

    def acquire(self) -> mmap:
        """A buffer with any content, the last released first: it may still be in the processor's cache."""
        return self._free.pop() if self._free else mmap(-1, BUFFER_BYTES, flags=MAP_PRIVATE | MAP_ANONYMOUS)

    def release(self, buffer: mmap) -> None:
        """Take back a buffer that nothing reads or writes any more."""
        self._free.append(buffer)
