"""Sums of files as they lie on disk."""

from __future__ import annotations

from io import FileIO

import xxhash

from podferry.storage.checksum.checksums import RunningChecksum

CHUNK = 1 << 20
"""Bytes read at a time: they stay in the processor's cache between the copy and the sum."""


def digest_of(file: FileIO) -> str:
    """XXH3-128 of what is left of an open file, as commits have it."""
    digest = xxhash.xxh3_128()
    add_file(file, digest)
    return digest.hexdigest()


def add_file(file: FileIO, running: RunningChecksum) -> None:
    """Add what is left of an open file to a sum."""
    buffer = memoryview(bytearray(CHUNK))
    while count := file.readinto(buffer):
        running.update(buffer[:count])
