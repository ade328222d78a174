"""Whether a pickle is complete, by walking its opcodes; nothing in it is ever loaded.

An opcode's argument has a fixed length, a length prefix, or ends with its line, so gigabytes of tensors are
skipped unread. Source: pickletools.py of the standard library.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import BinaryIO

NO_END = "its pickle has no end yet"
MAX_OPCODES = 2_000_000
"""Opcodes to walk, which takes a second or two. After that, only the last byte decides."""
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
TORCH_MAGIC = bytes.fromhex("8a0a6cfc9c46f9206aa85019")
"""In the first pickle of torch's older format, followed by raw numbers. Source: torch/serialization.py."""
HEAD_BYTES = 32
"""Bytes at the start that contain it, in every protocol."""


class Inconclusive(Exception):
    """The file's format does not show whether it is complete."""


def pickle_defect(path: Path) -> str | None:
    """Why a file of one or more pickles is incomplete, or None if it is complete.

    Raises:
        Inconclusive: It is not a pickle, or contains something else inside or after it.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if TORCH_MAGIC in file.read(HEAD_BYTES):
            raise Inconclusive
        file.seek(0)
        try:
            return None if _walk_to_end(file, size) or _ends_with_stop(file) else NO_END
        except EOFError:
            return NO_END if size else "it is empty"


def numbered_pickle_defect(path: Path) -> str | None:
    """Like `pickle_defect` for suffixes of many formats: only a protocol header identifies a pickle."""
    with path.open("rb") as file:
        if not _has_protocol_header(file.read(2)):
            raise Inconclusive
    return pickle_defect(path)


def joblib_defect(path: Path) -> str | None:
    """Joblib puts raw arrays into its pickle, which prevents a walk; its last byte is still a pickle's.

    Source: joblib/numpy_pickle.py (`NumpyPickler.save`).

    Raises:
        Inconclusive: The last byte is right, possibly by chance, or the file is compressed.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(2)
        if not head:
            return "it is empty"
        if _has_protocol_header(head) and not _ends_with_stop(file):
            return NO_END
    raise Inconclusive


def _has_protocol_header(head: bytes) -> bool:
    return len(head) == 2 and head[:1] == pickle.PROTO and head[1] in PROTOCOLS


def _ends_with_stop(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read() == pickle.STOP


def _walk_to_end(file: BinaryIO, size: int) -> bool:
    """Whether the walk reached the end of the last pickle; False after `MAX_OPCODES`.

    Raises:
        EOFError: The file ends inside a pickle.
        Inconclusive: An opcode does not belong to the pickle's protocol.
    """
    protocol = 1
    for _ in range(MAX_OPCODES):
        code = file.read(1)
        if not code:
            raise EOFError
        if code == pickle.PROTO:
            protocol = _read_protocol(file)
        elif code == pickle.STOP:
            if not _another_follows(file):
                return True
        elif code not in OPCODES or OPCODES[code].proto > protocol:
            raise Inconclusive
        else:
            _skip_argument(file, OPCODES[code].arg, size)
    return False


def _read_protocol(file: BinaryIO) -> int:
    number = file.read(1)
    if not number:
        raise EOFError
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


def _skip_argument(file: BinaryIO, argument: pickletools.ArgumentDescriptor | None, size: int) -> None:
    """Move past an argument, at most past the end of the file."""
    if argument is None:
        return
    if argument.n == pickletools.UP_TO_NEWLINE:
        for _ in range(2 if argument is pickletools.stringnl_noescape_pair else 1):
            _skip_line(file)
        return
    length = argument.n if argument.n >= 0 else _read_length(file, LENGTH_FORMATS[argument.n])
    if length <= READ_BYTES:
        file.read(length)  # several times faster than a seek
    else:
        file.seek(min(length, size), os.SEEK_CUR)


def _read_length(file: BinaryIO, form: struct.Struct) -> int:
    data = file.read(form.size)
    if len(data) < form.size:
        raise EOFError
    length: int = form.unpack(data)[0]
    if length < 0:
        raise Inconclusive
    return length


def _skip_line(file: BinaryIO) -> None:
    while not (piece := file.readline(READ_BYTES)).endswith(b"\n"):
        if not piece:
            raise EOFError
