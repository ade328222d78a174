"""Streams compressed by gzip or zlib: they show where they end, not what their content lacks."""

from __future__ import annotations

import zlib
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive, Torn

GZIP_MAGIC = b"\x1f\x8b"
GZIP_BITS, ZLIB_BITS = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS
MAX_UNPACKED_BYTES = 32 << 20
"""Bytes to unpack, which takes about a tenth of a second; longer streams are inconclusive."""
READ_BYTES = 1 << 18
NO_END = "its compressed stream has no end yet"


def unpack(file: BinaryIO, window_bits: int) -> bytes:
    """Unpack a whole file: one or more streams, perhaps followed by zeros.

    Args:
        file: The file, at its beginning.
        window_bits: `GZIP_BITS` or `ZLIB_BITS`.

    Raises:
        Torn: It has no end, or is damaged.
        Inconclusive: It has more than `MAX_UNPACKED_BYTES`, or something else follows.
    """
    found, rest = bytearray(), b""
    stream = zlib.decompressobj(window_bits)
    while data := rest or file.read(READ_BYTES):
        if stream.eof:
            data = data.lstrip(b"\0")
            if not data.startswith(GZIP_MAGIC[: len(data)]):
                raise Inconclusive
            stream = zlib.decompressobj(window_bits) if data else stream
        if data and not stream.eof:
            found += _unpack_some(stream, data, MAX_UNPACKED_BYTES + 1 - len(found))
        if len(found) > MAX_UNPACKED_BYTES:
            raise Inconclusive
        rest = stream.unused_data if data and stream.eof else stream.unconsumed_tail
    if not stream.eof:
        raise Torn(NO_END)
    return bytes(found)


def _unpack_some(stream: zlib._Decompress, data: bytes, limit: int) -> bytes:
    try:
        return stream.decompress(data, limit)
    except zlib.error as error:
        raise Torn("its compressed stream is damaged") from error
