"""Timeouts of store calls, and the memory that a transfer may use."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB
MAX_LISTED = 100_000_000
"""Objects of a listing that may be real: as many inodes as ext4 has on 1.6 TB. A broken server never ends."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of every engine, so that no call hangs.

    A call waits at most `retry_seconds + stall_seconds` for a store that does not respond: a retry starts
    only within the former.

    Attributes:
        connect_seconds: To open one connection. A reachable endpoint responds within a round trip.
        stall_seconds: Without a byte in either direction before a request counts as lost.
        request_seconds: For one request with its body: 16 MiB at a poor 0.1 MiB/s.
        retries: How often the engine repeats a request that may be repeated, with exponential back-off.
        retry_seconds: Since the first attempt; no retry starts later.
        metadata_seconds: For a cloud's metadata service to accept a connection: it is close by or absent.
        part_bytes: Of a chunked upload. S3 takes 10,000 parts, so an object can have `max_object_bytes`;
            `podferry.storage.multipart.part_bytes_for` returns larger parts if the size is known in advance.
            A part is repeated as one, and has one checksum, one signature and one request: from 8 MiB on
            these cost nothing compared with the bytes.
        concurrent_parts: In flight for one upload. A write of any size holds about twice as many in memory,
            with those being filled and copied (131 MiB were measured for 768 MiB with 4 of 16 MiB).
        worker_threads: For engines whose calls block.
    """

    connect_seconds: float = 5.0
    stall_seconds: float = 20.0
    request_seconds: float = 180.0
    retries: int = 3
    retry_seconds: float = 20.0
    metadata_seconds: float = 2.0
    part_bytes: int = 16 * MIB
    concurrent_parts: int = 4
    worker_threads: int = 16

    @property
    def max_object_bytes(self) -> int:
        """Bytes of the largest chunked upload: S3 takes 10,000 parts."""
        return 10_000 * self.part_bytes


LIMITS = Limits()
