"""How long a store may keep its caller waiting, and how much memory a transfer may hold."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True):
    """Bounds of every engine: no call hangs.

    The longest that a call waits for a store that does not answer is `retry_seconds + stall_seconds`: a
    retry is begun only within the former.

    Attributes:
        connect_seconds: For one connection to open. A reachable endpoint answers within a round trip.
        stall_seconds: Without a byte in either direction before a request counts as lost.
        request_seconds: For one request with its body: 16 MiB at a poor 0.1 MiB/s.
        retries: How often the engine repeats a request that may be repeated, with exponential back-off.
        retry_seconds: After this long since the first try none is begun any more.
        metadata_seconds: For a cloud's metadata service to accept a connection: it is next door or absent.
        part_bytes: Size of a part of a chunked upload. S3 takes 10,000 parts, so an object may reach
            `largest_object`; `podferry.storage.multipart.part_bytes_for` gives larger parts where the size is
            known before. A part is what is sent again after a failure, and one checksum, one signature and
            one request in its size: above 8 MiB these cost nothing beside the bytes.
        parts_at_once: Parts of one upload in flight. A write of any size holds about twice as many, with
            the parts that are being filled and copied (131 MiB were seen for 768 MiB with 4 of 16 MiB).
        parallel_calls: Threads for engines that block.
    """

    connect_seconds: float = 5.0
    stall_seconds: float = 20.0
    request_seconds: float = 180.0
    retries: int = 3
    retry_seconds: float = 20.0
    metadata_seconds: float = 2.0
    part_bytes: int = 16 * MIB
    parts_at_once: int = 4
    parallel_calls: int = 16

    @property
    def largest_object(self) -> int:
        """Bytes that a chunked upload can hold: S3's limit of 10,000 parts."""
        return 10_000 * self.part_bytes


LIMITS = Limits()
