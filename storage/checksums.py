"""CRC-64/NVME, the checksum that S3 keeps of a whole object, also of one that was sent in parts.

Amazon's own implementation is used: it is as fast as memory, and joins the parts' values into the whole's.
Its package is imported at the first use, which most processes never come to.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from podferry.storage.parts import Receipt


class Whole(msgspec.Struct, frozen=True):
    """What an object of several parts must be.

    Attributes:
        size: Its bytes.
        crc64: CRC-64/NVME of them.
    """

    size: int
    crc64: int


def crc64(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """CRC-64/NVME of `data`, continued from `before`."""
    return int(_library().crc64nvme(data, before))


def whole_of(receipts: Iterable[Receipt]) -> Whole:
    """Size and checksum of the object whose parts these are, in their order."""
    size, joined = 0, 0
    for receipt in receipts:
        joined = _library().combine_crc64nvme(joined, receipt.crc64, receipt.size)
        size += receipt.size
    return Whole(size, int(joined))


@lru_cache(maxsize=1)
def _library() -> Any:
    return importlib.import_module("awscrt.checksums")
