"""joblib's dumps: pickles with raw arrays inside, which prevents a walk; the last byte is still a pickle's.

One in 256 torn dumps ends with that byte by chance. Source: joblib/numpy_pickle.py (`NumpyPickler.save`),
joblib/compressor.py.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.compressed_stream import (
    GZIP_BITS,
    GZIP_MAGIC,
    ZLIB_BITS,
    unpack,
)
from podferry.sidecar.checkpoint.detect.formats.pickle_check import NO_END, ends_with_stop
from podferry.sidecar.checkpoint.detect.formats.pickle_walk import has_protocol_header
from podferry.sidecar.checkpoint.detect.formats.verdict import INCONCLUSIVE, FormatVerdict, Torn, incomplete

ZLIB_FIRST_BYTE = b"\x78"


def joblib_verdict(path: Path) -> FormatVerdict:
    """A dump must end like a pickle, also within gzip or zlib. Other compressors are inconclusive.

    Raises:
        Torn: It does not, or the stream has no end.
        Inconclusive: It is too large to unpack.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(2)
        file.seek(0)
        if not head:
            return incomplete("it is empty")
        if not _ends_like_pickle(file, head):
            raise Torn(NO_END)
    return INCONCLUSIVE


def _ends_like_pickle(file: BinaryIO, head: bytes) -> bool:
    if head == GZIP_MAGIC or head[:1] == ZLIB_FIRST_BYTE:
        return unpack(file, GZIP_BITS if head == GZIP_MAGIC else ZLIB_BITS).endswith(pickle.STOP)
    return ends_with_stop(file) if has_protocol_header(head) else True
