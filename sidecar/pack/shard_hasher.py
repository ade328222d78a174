"""Digests of a shard and of each of its members."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import xxhash

from podferry.sidecar.fetch.byte_stream import MAX_READ_BYTES


class ShardHasher:
    """XXH3-128 of an archive and of each member, from its bytes in order.

    Args:
        ranges: (offset, size) of each member, in order.

    Attributes:
        member_digests: Of the members seen completely, 32 hexadecimal digits each.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.member_digests: list[str] = []
        self._position = 0
        self._ranges = ranges
        self._archive, self._member = xxhash.xxh3_128(), xxhash.xxh3_128()

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        start, self._position = self._position, self._position + len(data)
        self._archive.update(data)
        view = memoryview(data)
        while len(self.member_digests) < len(self._ranges):
            offset, size = self._ranges[len(self.member_digests)]
            if offset > self._position:
                return
            self._member.update(view[max(offset - start, 0) : max(offset + size - start, 0)])
            if offset + size > self._position:
                return
            self.member_digests.append(self._member.hexdigest())
            self._member = xxhash.xxh3_128()

    def read(self, source: io.RawIOBase) -> Iterator[bytes]:
        """Pass on a stream in chunks, adding each."""
        while chunk := source.read(MAX_READ_BYTES):
            self.update(chunk)
            yield chunk

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        return self._archive.hexdigest()
