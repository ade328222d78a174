"""safetensors: the header's offsets give the file's size. Source: the safetensors format description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from podferry.sidecar.checkpoint.detect.formats.file_holes import HOLES, hole_bytes, zeros_stay_written
from podferry.sidecar.checkpoint.detect.formats.file_section import size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, FormatVerdict, incomplete, unproven

MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors header. Source: the safetensors format description."""


def safetensors_verdict(path: Path) -> FormatVerdict:
    """A file of the right size is complete, unless parts of it were never written.

    A program that writes the tensors of several ranks into one file, such as torch's consolidation, may write
    the header first and the tensors in any order. Where zeros may become holes, holes are counted instead.
    """
    with path.open("rb") as file:
        defect = _size_defect(file, size_of(file))
        if defect is not None:
            return incomplete(defect)
        holes = hole_bytes(file)
        if holes and zeros_stay_written(file):
            return incomplete(f"{holes} of its bytes were never written (it has holes)")
    return unproven(((HOLES, holes),)) if holes else COMPLETE


def _size_defect(file: BinaryIO, size: int) -> str | None:
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little") if len(prefix) == 8 else size
    if length > size - 8:
        return "its header is not written yet"
    try:
        expected = 8 + length + _tensors_end(json.loads(file.read(min(length, MAX_HEADER_BYTES))))
    except (ValueError, LookupError, TypeError, AttributeError):
        return "its header is damaged"
    return None if size == expected else f"it has {size} bytes, its header says {expected}"


def _tensors_end(header: dict[str, dict[str, list[int]]]) -> int:
    ends = (tensor["data_offsets"][1] for key, tensor in header.items() if key != "__metadata__")
    return max(ends, default=0)
