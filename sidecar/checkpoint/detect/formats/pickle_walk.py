"""Walks the opcodes of a pickle without loading anything.

An opcode's argument has a fixed length, a length prefix, or ends with its line, so gigabytes of tensors are
skipped unread. Source: pickletools.py of the standard library.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_section import position_in, read_exactly
from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive

MAX_OPCODES = 2_000_000
"""Opcodes to walk, which takes a second or two."""
READ_BYTES = 1 << 16
"""Arguments up to this length are read; longer ones of known length are skipped."""
LENGTH_FORMATS = {
    pickletools.TAKEN_FROM_ARGUMENT1: struct.Struct("<B"),
    pickletools.TAKEN_FROM_ARGUMENT4: struct.Struct("<i"),
    pickletools.TAKEN_FROM_ARGUMENT4U: struct.Struct("<I"),
    pickletools.TAKEN_FROM_ARGUMENT8U: struct.Struct("<Q"),
}
OPCODES = {opcode.code.encode("latin-1"): opcode for opcode in pickletools.opcodes}
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
"""Those with a protocol header; older pickles have none."""

Observer = Callable[[bytes, bytes], None]
"""Called with each opcode and its argument, without its length; empty if it is longer than `READ_BYTES`."""


class TooLong(Inconclusive):
    """The pickle has more than `MAX_OPCODES`."""


def walk_pickles(file: BinaryIO, size: int, observe: Observer = lambda *_: None) -> list[int]:
    """Walk pickles that follow one another, from the current position to the end of the file.

    Args:
        file: The pickles.
        size: Size of the file in bytes.
        observe: Called with each opcode.

    Returns:
        Where each of them ends.

    Raises:
        EOFError: The file ends inside a pickle.
        TooLong: They have more than `MAX_OPCODES`.
        Inconclusive: An opcode does not belong to its pickle's protocol, or something else follows a pickle.
    """
    protocol, ends = 1, list[int]()
    for _ in range(MAX_OPCODES):
        code = file.read(1)
        if not code:
            raise EOFError
        if code == pickle.PROTO:
            protocol = _read_protocol(file)
        elif code == pickle.STOP:
            ends.append(position_in(file))
            if not _another_follows(file):
                return ends
        elif code not in OPCODES or OPCODES[code].proto > protocol:
            raise Inconclusive
        else:
            observe(code, _read_argument(file, OPCODES[code].arg, size))
    raise TooLong


def has_protocol_header(head: bytes) -> bool:
    """Whether the first two bytes identify a pickle."""
    return len(head) == 2 and head[:1] == pickle.PROTO and head[1] in PROTOCOLS


def _read_protocol(file: BinaryIO) -> int:
    number = read_exactly(file, 1)
    if number[0] not in PROTOCOLS:
        raise Inconclusive
    return number[0]


def _another_follows(file: BinaryIO) -> bool:
    """Whether another pickle follows; any other content is inconclusive."""
    code = file.read(1)
    if code:
        file.seek(-1, os.SEEK_CUR)
        if code != pickle.PROTO:
            raise Inconclusive
    return bool(code)


def _read_argument(file: BinaryIO, argument: pickletools.ArgumentDescriptor | None, size: int) -> bytes:
    """Read or skip an argument, at most past the end of the file."""
    if argument is None:
        return b""
    if argument.n == pickletools.UP_TO_NEWLINE:
        lines = 2 if argument is pickletools.stringnl_noescape_pair else 1
        return b"\n".join(_read_line(file) for _ in range(lines))
    length = argument.n if argument.n >= 0 else _read_length(file, LENGTH_FORMATS[argument.n])
    if length <= READ_BYTES:
        return file.read(length)  # several times faster than a seek
    file.seek(min(length, size), os.SEEK_CUR)
    return b""


def _read_length(file: BinaryIO, form: struct.Struct) -> int:
    length: int = form.unpack(read_exactly(file, form.size))[0]
    if length < 0:
        raise Inconclusive
    return length


def _read_line(file: BinaryIO) -> bytes:
    """A line without its end; the last part of a very long one."""
    while not (piece := file.readline(READ_BYTES)).endswith(b"\n"):
        if not piece:
            raise EOFError
    return piece[:-1]
