"""Checks of file formats that show their own end.

A torn file must never pass as complete. Formats that do not show their end are left to the time a file has
been quiet, and to the sizes of earlier files (`podferry.sidecar.checkpoint.detect.history`).
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from glob import escape
from pathlib import Path
from typing import NamedTuple

from podferry.sidecar.checkpoint.detect.pickle_check import (
    Inconclusive,
    joblib_defect,
    numbered_pickle_defect,
    pickle_defect,
)

ZIP_MAGIC = b"PK\x03\x04"
TABLE_END = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table. Source: tensorflow/tsl, `lib/io/format.h` (`kTableMagicNumber`)."""
MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors header. Source: the safetensors format description."""


class FormatVerdict(NamedTuple):
    """What a file's own format shows.

    Attributes:
        defect: Why the file is incomplete, or None.
        conclusive: Whether the format shows where a file ends: without a defect, it is complete.
    """

    defect: str | None
    conclusive: bool


INCONCLUSIVE = FormatVerdict(None, conclusive=False)


def check_format(path: Path) -> FormatVerdict:
    """Check a file by the format of its suffix."""
    find_defect = FORMAT_CHECKS.get(path.suffix)
    if find_defect is None:
        return INCONCLUSIVE
    try:
        return FormatVerdict(find_defect(path), conclusive=True)
    except (Inconclusive, RecursionError):  # nested too deeply for the parser
        return INCONCLUSIVE
    except OSError as error:
        return FormatVerdict(f"it cannot be read: {error.strerror}", conclusive=True)


def _zip_defect(path: Path) -> str | None:
    """torch.save and NumPy's savez write zip archives, with the directory at the end on exit.

    An archive may contain another one, whose end must not pass for its own: its directory must begin with a
    member at byte 0. torch's older format is a pickle without such a marker and inconclusive.
    Source: torch/serialization.py (`_open_zipfile_writer_file`), numpy/lib/_npyio_impl.py (`_savez`).
    """
    if not _starts_like_zip(path):
        raise Inconclusive
    try:
        with zipfile.ZipFile(path) as archive:
            first = min((member.header_offset for member in archive.infolist()), default=None)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        first = None
    return None if first == 0 else "its zip directory is not written yet"


def _starts_like_zip(path: Path) -> bool:
    """Also true for an empty or shorter file: its first bytes may follow."""
    with path.open("rb") as file:
        return ZIP_MAGIC.startswith(file.read(len(ZIP_MAGIC)))


def _archive_defect(path: Path) -> str | None:
    """For suffixes that mean a zip archive; an empty file is one whose writing has just begun."""
    return _zip_defect(path) if path.stat().st_size else "it is empty"


def _torch_defect(path: Path) -> str | None:
    """For suffixes of archives that are also used for pickles."""
    return _archive_defect(path) if _starts_like_zip(path) else numbered_pickle_defect(path)


def _zip_or_pickle_defect(path: Path) -> str | None:
    return _archive_defect(path) if _starts_like_zip(path) else pickle_defect(path)


def _maybe_zip_defect(path: Path) -> str | None:
    """For suffixes of many formats: a zip archive must be complete, any other format is inconclusive."""
    if not path.stat().st_size:
        raise Inconclusive
    return _zip_defect(path)


def _table_defect(path: Path) -> str | None:
    """TensorFlow's Saver writes the index of its shards in place, as a table with an end marker.

    Source: tensorflow, `core/util/tensor_bundle/tensor_bundle.cc` (`MergeBundles`).
    """
    if not any(path.parent.glob(f"{escape(path.stem)}.data-?????-of-?????")):
        raise Inconclusive  # an index of another kind
    with path.open("rb") as file:
        file.seek(-min(len(TABLE_END), path.stat().st_size), os.SEEK_END)
        return None if file.read() == TABLE_END else "its table has no end marker yet"


def _safetensors_defect(path: Path) -> str | None:
    """The header's offsets give the file's size. Source: the safetensors format description."""
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else size
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


def _json_defect(path: Path) -> str | None:
    """One JSON document, or one per line: this suffix is used for both."""
    data = path.read_bytes()
    try:
        json.loads(data)
    except ValueError:
        return None if _is_json_lines(data) else "it is not a complete JSON document"
    return None


def _is_json_lines(data: bytes) -> bool:
    try:
        return len([json.loads(line) for line in data.splitlines() if line.strip()]) > 1
    except ValueError:
        return False


FORMAT_CHECKS: Mapping[str, Callable[[Path], str | None]] = {
    **dict.fromkeys((".npz", ".zip", ".keras"), _archive_defect),
    **dict.fromkeys((".pt", ".pth", ".ckpt"), _torch_defect),
    **dict.fromkeys((".pkl", ".pickle", ".pdparams", ".pdopt"), _zip_or_pickle_defect),
    ".bin": _maybe_zip_defect,
    ".joblib": joblib_defect,
    ".index": _table_defect,
    ".safetensors": _safetensors_defect,
    ".json": _json_defect,
}
"""By suffix. Each returns a defect or None, and raises `Inconclusive` or `OSError`."""


def missing_shards(root: Path, members: Iterable[str]) -> str | None:
    """The first missing file that an index lists: Hugging Face's `*.index.json` lists its shards.

    Source: transformers, `modeling_utils.py` (`weight_map` of `model.safetensors.index.json`).
    """
    names = set(members)
    for name in sorted(names):
        if name.endswith(".index.json"):
            folder = name.rpartition("/")[0]
            listed = {f"{folder}/{shard}".lstrip("/") for shard in _listed_shards(root / name)}
            if missing := sorted(listed - names):
                return f"{name} lists {missing[0]}, which is missing"
    return None


def _listed_shards(index: Path) -> set[str]:
    """The files that an index lists; none for an index of another kind or a removed one."""
    try:
        found = json.loads(index.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    weights = found.get("weight_map") if isinstance(found, dict) else None
    return {str(shard) for shard in weights.values()} if isinstance(weights, dict) else set()
