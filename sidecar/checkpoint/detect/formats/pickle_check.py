"""Whether a file of pickles is complete; nothing in it is ever loaded."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_section import size_of
from podferry.sidecar.checkpoint.detect.formats.pickle_walk import TooLong, has_protocol_header, walk_pickles
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
    Torn,
    unproven,
)

NO_END = "its pickle has no end yet"
PICKLES = "pickles"
"""The member of such a file, with their number: one is an entire file, unless the file before had more."""
ONE_PICKLE = FormatVerdict(None, conclusive=True, members=((PICKLES, 1),))
TORCH_MAGIC = bytes.fromhex("8a0a6cfc9c46f9206aa85019")
"""In the first pickle of torch's older format, followed by raw numbers. Source: torch/serialization.py."""
HEAD_BYTES = 32
"""Bytes at the start that contain it, in every protocol."""


def pickle_verdict(path: Path) -> FormatVerdict:
    """One pickle shows its end. Of several, one after the other, the last may be missing.

    After the opcode limit, the last byte can still show that the pickle has no end.

    Raises:
        Torn: It ends inside a pickle.
        Inconclusive: It is not a pickle, or contains something else inside or after it.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        if TORCH_MAGIC in file.read(HEAD_BYTES):
            raise Inconclusive
        file.seek(0)
        try:
            ends = walk_pickles(file, size)
        except TooLong:
            if not ends_with_stop(file):
                raise Torn(NO_END) from None
            raise
        except EOFError:
            raise Torn(NO_END if size else "it is empty") from None
    return ONE_PICKLE if len(ends) == 1 else unproven(((PICKLES, len(ends)),))


def numbered_pickle_verdict(path: Path) -> FormatVerdict:
    """Like `pickle_verdict` for suffixes of many formats: only a protocol header identifies a pickle."""
    with path.open("rb") as file:
        if not has_protocol_header(file.read(2)):
            return INCONCLUSIVE
    return pickle_verdict(path)


def ends_with_stop(file: BinaryIO) -> bool:
    """Whether the last byte is that of a pickle; the file must not be empty."""
    file.seek(-1, os.SEEK_END)
    return file.read() == pickle.STOP
