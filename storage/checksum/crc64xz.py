"""CRC-64/XZ, which Alibaba's OSS stores for every object as CRC64-ECMA.

Computed by the library behind Python's lzma module: no other package that podferry needs computes it fast
enough. If that library is not accessible, neither is this checksum.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from functools import lru_cache

COPY_BYTES = 1 << 18
"""Bytes copied for the library at a time: they stay in the processor's cache after the copy."""
POLYNOMIAL = 0xC96C5795D7870F42
"""Of ECMA-182, with its bits reversed: bit 63 is the coefficient of 1, bit 0 that of x to the 63rd."""
ONE = 1 << 63

CrcFunction = Callable[[bytes | bytearray | memoryview, int], int]


@lru_cache(maxsize=1)
def crc64xz() -> CrcFunction | None:
    """The function of data and the CRC before it, or None if the library is not accessible."""
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
            chunk = bytes(view[start : start + COPY_BYTES])
            before = function(chunk, len(chunk), before)
        return before

    return compute


def combine_crc64xz(first: int, second: int, second_length: int) -> int:
    """The CRC of two consecutive ranges: the first, shifted by the second's length, xor the second."""
    return _multiply(_power_of_x(8 * second_length), first) ^ second


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials over GF(2), modulo the CRC's."""
    product = 0
    for bit in range(63, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (POLYNOMIAL if b & 1 else 0)
    return product


@lru_cache(maxsize=8)
def _power_of_x(exponent: int) -> int:
    """X to the `exponent`, in the same field. Cached, because ranges have few different lengths."""
    product, square = ONE, ONE >> 1
    while exponent:
        if exponent & 1:
            product = _multiply(product, square)
        square = _multiply(square, square)
        exponent >>= 1
    return product
