"""zstd streams: their blocks have lengths, so that the end is found without unpacking.

Source: RFC 8878, 3.1.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_section import position_in, read_exactly, size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE, FormatVerdict, Inconclusive, Torn

MAGIC, SKIPPABLE = 0xFD2FB528, 0x184D2A50
MAX_BLOCKS = 200_000
"""Blocks of up to 128 KiB, which takes about half a second; longer streams are inconclusive."""
DICTIONARY_BYTES = (0, 1, 2, 4)
RLE_BLOCK = 1
NO_END = "its compressed stream has no end yet"


def zstd_verdict(path: Path) -> FormatVerdict:
    """Whether all frames have their end.

    Raises:
        Torn: A frame has no end.
        Inconclusive: It is of another kind, or too long.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        if not size:
            raise Torn("it is empty")
        try:
            blocks = 0
            while position_in(file) < size:
                blocks += _skip_frame(file, MAX_BLOCKS - blocks)
        except EOFError:
            raise Torn(NO_END) from None
        if position_in(file) > size:
            raise Torn(NO_END)
    return INCONCLUSIVE


def _skip_frame(file: BinaryIO, limit: int) -> int:
    """Move past a frame; the number of its blocks."""
    magic = int.from_bytes(read_exactly(file, 4), "little")
    if magic & ~0xF == SKIPPABLE:
        file.seek(int.from_bytes(read_exactly(file, 4), "little"), os.SEEK_CUR)
        return 1
    if magic != MAGIC:
        raise Inconclusive
    descriptor = read_exactly(file, 1)[0]
    single_segment, size_flag = descriptor >> 5 & 1, descriptor >> 6
    content_size = 1 << size_flag if size_flag else single_segment
    read_exactly(file, (not single_segment) + DICTIONARY_BYTES[descriptor & 3] + content_size)
    for number in range(limit):
        if _skip_block(file):
            read_exactly(file, 4 * (descriptor >> 2 & 1))  # the checksum
            return number + 1
    raise Inconclusive


def _skip_block(file: BinaryIO) -> bool:
    """Move past a block; whether it is its frame's last one."""
    header = int.from_bytes(read_exactly(file, 3), "little")
    length = 1 if header >> 1 & 3 == RLE_BLOCK else header >> 3
    file.seek(length, os.SEEK_CUR)
    return bool(header & 1)
