"""Digests of open files."""

from __future__ import annotations

import os
from io import FileIO

import xxhash

from podferry.storage.checksum.checksums import RunningChecksum

CHUNK_BYTES = 1 << 20
"""Read at a time: they stay in the processor's cache between the copy and the digest."""


def digest_of(file: FileIO) -> str:
    """XXH3-128 of the rest of a file, in hex, as commits record it."""
    digest = xxhash.xxh3_128()
    update_from_file(digest, file)
    return digest.hexdigest()


def update_from_file(digest: RunningChecksum, file: FileIO) -> None:
    """Add the rest of a file to a digest."""
    # To zero a buffer of CHUNK_BYTES takes longer than to read a small file.
    size = min(CHUNK_BYTES, max(os.fstat(file.fileno()).st_size, 1))
    buffer = memoryview(bytearray(size))
    while count := file.readinto(buffer):
        digest.update(buffer[:count])
