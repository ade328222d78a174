"""CRC-64/XZ, which Alibaba's OSS keeps of every object and calls CRC64-ECMA.

It is computed by the library under Python's own lzma module: no other package that podferry needs has it at a
usable speed. Where that library is linked in out of reach, there is no such sum.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from functools import lru_cache

COPY_BYTES = 1 << 18
"""Bytes that are handed to the library at a time: they stay in the processor's cache after the copy."""
POLYNOMIAL = 0xC96C5795D7870F42
"""ECMA-182's, bits reversed: bit 63 is the coefficient of 1, bit 0 that of x to the 63rd."""
ONE = 1 << 63

CrcFunction = Callable[[bytes | bytearray | memoryview, int], int]


@lru_cache(maxsize=1)
def crc64xz() -> CrcFunction | None:
    """The function of data and the CRC before it, None where there is none."""
    try:
        library = ctypes.CDLL(importlib.import_module("_lzma").__file__)
        function = library.lzma_crc64
    except (ImportError, AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)
    function.restype = ctypes.c_uint64

    def compute(data: bytes | bytearray | memoryview, before: int) -> int:
        view = memoryview(data)
        for start in range(0, len(view), COPY_BYTES):
            piece = bytes(view[start : start + COPY_BYTES])
            before = function(piece, len(piece), before)
        return before

    return compute


def combine_crc64xz(first: int, second: int, second_length: int) -> int:
    """The CRC of two pieces in a row: the first one's, shifted past the second's bytes, and the second's."""
    return _times(_power(8 * second_length), first) ^ second


def _times(one: int, other: int) -> int:
    """The product of two polynomials over GF(2), modulo the CRC's."""
    product = 0
    for bit in range(63, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (POLYNOMIAL if other & 1 else 0)
    return product


@lru_cache(maxsize=8)
def _power(exponent: int) -> int:
    """The power of x to the `exponent`, in the same field. Kept, since ranges have few lengths."""
    product, square = ONE, ONE >> 1
    while exponent:
        if exponent & 1:
            product = _times(product, square)
        square = _times(square, square)
        exponent >>= 1
    return product
