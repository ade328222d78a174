"""The index of TensorFlow's Saver: a table with an end marker.

Source: tensorflow, `core/util/tensor_bundle/tensor_bundle.cc` (`MergeBundles`).
"""

from __future__ import annotations

import os
from glob import escape
from pathlib import Path

from podferry.sidecar.checkpoint.detect.formats.verdict import (
    COMPLETE,
    INCONCLUSIVE,
    FormatVerdict,
    incomplete,
)

TABLE_END = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table. Source: tensorflow/tsl, `lib/io/format.h` (`kTableMagicNumber`)."""


def index_verdict(path: Path) -> FormatVerdict:
    """Next to its shards, it is written in place."""
    if not any(path.parent.glob(f"{escape(path.stem)}.data-?????-of-?????")):
        return INCONCLUSIVE  # an index of another kind
    with path.open("rb") as file:
        file.seek(-min(len(TABLE_END), path.stat().st_size), os.SEEK_END)
        return COMPLETE if file.read() == TABLE_END else incomplete("its table has no end marker yet")
