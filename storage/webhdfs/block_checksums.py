"""HDFS's checksum of a file: the MD5 of the MD5s of its blocks' CRC32Cs, computed while a file is sent.

Source: Hadoop's `MD5MD5CRC32FileChecksum` and `FileChecksumHelper`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

ALGORITHM = re.compile(r"MD5-of-(\d+)MD5-of-(\d+)CRC32C")
"""CRCs in a block, 0 if there is one block, and the bytes of each CRC."""
CHUNK_BYTES = 512
"""`dfs.bytes-per-checksum` by default; another one is not compared."""


def _crc32c() -> Callable[[Any], int]:
    """Imported when it is needed, and without types."""
    found: Callable[[Any], int] = import_module("awscrt.checksums").crc32c
    return found


class BlockChecksums:
    """The CRC32C of each 512 bytes: 8 MiB of them for a file of 1 GiB."""

    def __init__(self) -> None:
        self._crcs = bytearray()
        self._crc32c = _crc32c()
        self._rest = b""

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(self._rest + data if self._rest else data)
        whole = len(view) - len(view) % CHUNK_BYTES
        for start in range(0, whole, CHUNK_BYTES):
            self._crcs += self._crc32c(view[start : start + CHUNK_BYTES]).to_bytes(4, "big")
        self._rest = bytes(view[whole:])

    def file_checksum(self, algorithm: str) -> str | None:
        """The checksum of all bytes in hexadecimal, or None for an algorithm that is not computed."""
        found = ALGORITHM.fullmatch(algorithm)
        if found is None or int(found[2]) != CHUNK_BYTES:
            return None
        last = self._crc32c(self._rest).to_bytes(4, "big") if self._rest else b""
        crcs = bytes(self._crcs) + last
        per_block = 4 * int(found[1]) or len(crcs)
        blocks = (crcs[start : start + per_block] for start in range(0, len(crcs), per_block or 1))
        digests = b"".join(hashlib.md5(block, usedforsecurity=False).digest() for block in blocks)
        return hashlib.md5(_padded(digests), usedforsecurity=False).hexdigest()


def _padded(digests: bytes) -> bytes:
    """Hadoop digests the buffer that collects them, with the zeros behind them: 32 bytes, then doubled."""
    size = 32
    while size < len(digests):
        size *= 2
    return digests.ljust(size, b"\0")


def stated_checksum(text: str) -> str:
    """The MD5 in the `bytes` of a response: behind two numbers of 4 and 8 bytes, before padding."""
    return text[24:56].lower()
