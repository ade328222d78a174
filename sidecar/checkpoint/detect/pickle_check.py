"""Whether a pickle ends where its file does: its opcodes are walked, nothing in it is ever loaded.

An opcode's argument has a fixed length, a length of its own before it, or ends with its line, so that
gigabytes of tensors are passed over unread. Source: pickletools.py of the standard library.
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
"""Opcodes that are looked at, which takes a second or two. Beyond them the last byte alone tells."""
LINE = 1 << 16
"""Bytes of an argument that are read at once; longer ones are passed over where their length is known."""
COUNTS = {
    pickletools.TAKEN_FROM_ARGUMENT1: struct.Struct("<B"),
    pickletools.TAKEN_FROM_ARGUMENT4: struct.Struct("<i"),
    pickletools.TAKEN_FROM_ARGUMENT4U: struct.Struct("<I"),
    pickletools.TAKEN_FROM_ARGUMENT8U: struct.Struct("<Q"),
}
OPCODES = {opcode.code.encode("latin-1"): opcode for opcode in pickletools.opcodes}
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
"""Those that a pickle names at its very start; an older one just begins."""
TORCH_MAGIC = bytes.fromhex("8a0a6cfc9c46f9206aa85019")
"""In the first pickle of torch's older format, which raw numbers follow. Source: torch/serialization.py."""
HEAD = 32
"""Bytes at the start that hold it, whatever the protocol."""


class CannotTell(Exception):
    """What lies there may be whole or not: its format does not say."""


def pickle_defect(path: Path) -> str | None:
    """Why a file of pickles, one after the other, cannot be whole; None where it is.

    Raises:
        CannotTell: It is no pickle, or something else follows or lies in it.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if TORCH_MAGIC in file.read(HEAD):
            raise CannotTell
        file.seek(0)
        try:
            return None if _walk(file, size) or _stops(file) else NO_END
        except EOFError:
            return NO_END if size else "it is empty"


def numbered_pickle_defect(path: Path) -> str | None:
    """The same, where anything that does not begin as a pickle does may be of another format.

    Raises:
        CannotTell, OSError: See `pickle_defect`.
    """
    with path.open("rb") as file:
        if not _numbered(file.read(2)):
            raise CannotTell
    return pickle_defect(path)


def joblib_defect(path: Path) -> str | None:
    """Joblib puts raw arrays into its pickle, which cannot be walked; its last byte is a pickle's still.

    Source: joblib/numpy_pickle.py (`NumpyPickler.save`).

    Raises:
        CannotTell: The last byte is right, which chance may do, or the file is compressed.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(2)
        if not head:
            return "it is empty"
        if _numbered(head) and not _stops(file):
            return NO_END
    raise CannotTell


def _numbered(head: bytes) -> bool:
    return len(head) == 2 and head[:1] == pickle.PROTO and head[1] in PROTOCOLS


def _stops(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read() == pickle.STOP


def _walk(file: BinaryIO, size: int) -> bool:
    """Whether the last pickle was walked to its end; False where that is too far.

    Raises:
        EOFError: The file ends before a pickle does.
        CannotTell: An opcode is unknown to the pickle's protocol.
    """
    protocol = 1
    for _ in range(MAX_OPCODES):
        code = file.read(1)
        if not code:
            raise EOFError
        if code == pickle.PROTO:
            protocol = _protocol(file)
        elif code == pickle.STOP:
            if not _another(file):
                return True
        elif code not in OPCODES or OPCODES[code].proto > protocol:
            raise CannotTell
        else:
            _pass_over(file, OPCODES[code].arg, size)
    return False


def _protocol(file: BinaryIO) -> int:
    number = file.read(1)
    if not number:
        raise EOFError
    if number[0] not in PROTOCOLS:
        raise CannotTell
    return number[0]


def _another(file: BinaryIO) -> bool:
    """Whether another pickle follows; what else follows cannot tell."""
    code = file.read(1)
    if code:
        file.seek(-1, os.SEEK_CUR)
        if code != pickle.PROTO:
            raise CannotTell
    return bool(code)


def _pass_over(file: BinaryIO, argument: pickletools.ArgumentDescriptor | None, size: int) -> None:
    """Go behind an argument, at most behind the end of the file."""
    if argument is None:
        return
    if argument.n == pickletools.UP_TO_NEWLINE:
        for _ in range(2 if argument is pickletools.stringnl_noescape_pair else 1):
            _pass_line(file)
        return
    count = argument.n if argument.n >= 0 else _count(file, COUNTS[argument.n])
    if count <= LINE:
        file.read(count)  # several times as fast as a seek
    else:
        file.seek(min(count, size), os.SEEK_CUR)


def _count(file: BinaryIO, form: struct.Struct) -> int:
    head = file.read(form.size)
    if len(head) < form.size:
        raise EOFError
    count: int = form.unpack(head)[0]
    if count < 0:
        raise CannotTell
    return count


def _pass_line(file: BinaryIO) -> None:
    piece = file.readline(LINE)
    while not piece.endswith(b"\n"):
        if not piece:
            raise EOFError
        piece = file.readline(LINE)
