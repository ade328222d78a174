"""Checks of file formats that can tell whether a file is whole.

A torn file must never pass for a sound one; what a format cannot tell is left to the time that a file has
been quiet, and to the sizes of those before it (`podferry.sidecar.checkpoint.detect.history`).
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
    CannotTell,
    joblib_defect,
    numbered_pickle_defect,
    pickle_defect,
)

ZIP_MAGIC = b"PK\x03\x04"
TABLE_END = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table. Source: tensorflow/tsl, `lib/io/format.h` (`kTableMagicNumber`)."""
MAX_HEADER_BYTES = 100_000_000
"""Bytes of a safetensors header. Source: the safetensors format description."""


class FormatVerdict(NamedTuple):
    """What a file's own format says.

    Attributes:
        defect: Why it cannot be whole, None where nothing speaks against it.
        certain: Whether it is whole where nothing does; the format cannot tell otherwise.
    """

    defect: str | None
    certain: bool


CANNOT_TELL = FormatVerdict(None, certain=False)


def check(path: Path) -> FormatVerdict:
    """What a file's own format says about it."""
    check = FORMAT_CHECKS.get(path.suffix)
    if check is None:
        return CANNOT_TELL
    try:
        return FormatVerdict(check(path), certain=True)
    except (CannotTell, RecursionError):  # nested too deeply for the parser, so it cannot tell either
        return CANNOT_TELL
    except OSError as error:
        return FormatVerdict(f"it cannot be read: {error.strerror}", certain=True)


def defect(path: Path) -> str | None:
    """Why a file cannot be whole by its own format, None where it is or cannot tell."""
    return check(path).defect


def _zip_flaw(path: Path) -> str | None:
    """torch.save and NumPy's savez write zip archives: the directory at the end is written at exit.

    An archive may hold another one, whose own end must not pass for the end of the whole: the directory must
    begin with what lies at the very start. torch's older format is a pickle without such a mark and cannot
    tell. Source: torch/serialization.py (`_open_zipfile_writer_file`), numpy/lib/_npyio_impl.py (`_savez`).
    """
    if not _begins_as_zip(path):
        raise CannotTell
    try:
        with zipfile.ZipFile(path) as archive:
            first = min((member.header_offset for member in archive.infolist()), default=None)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        first = None
    return None if first == 0 else "its zip directory is not written yet"


def _begins_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return ZIP_MAGIC.startswith(file.read(len(ZIP_MAGIC)))


def _archive_flaw(path: Path) -> str | None:
    """A zip archive by its suffix alone; an empty file is one whose writing has just begun."""
    return _zip_flaw(path) if path.stat().st_size else "it is empty"


def _torch_flaw(path: Path) -> str | None:
    """As an archive; people pickle into these suffixes, too."""
    return _archive_flaw(path) if _begins_as_zip(path) else numbered_pickle_defect(path)


def _zip_or_pickle(path: Path) -> str | None:
    return _archive_flaw(path) if _begins_as_zip(path) else pickle_defect(path)


def _zip_or_else(path: Path) -> str | None:
    """For suffixes that stand for anything: a zip archive must be whole, another format cannot tell."""
    if not path.stat().st_size:
        raise CannotTell
    return _zip_flaw(path)


def _table_flaw(path: Path) -> str | None:
    """TensorFlow's Saver writes the index of its shards in place, as a table that has its mark at the end.

    Source: tensorflow, `core/util/tensor_bundle/tensor_bundle.cc` (`MergeBundles`).
    """
    if not any(path.parent.glob(f"{escape(path.stem)}.data-?????-of-?????")):
        raise CannotTell  # an index of another kind
    with path.open("rb") as file:
        file.seek(-min(len(TABLE_END), path.stat().st_size), os.SEEK_END)
        return None if file.read() == TABLE_END else "its table has no end yet"


def _safetensors_flaw(path: Path) -> str | None:
    """The header's offsets say how long the file must be. Source: the safetensors format description."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
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


def _json_flaw(path: Path) -> str | None:
    """A whole document, or one a line: both are found under this suffix."""
    data = path.read_bytes()
    try:
        json.loads(data)
    except ValueError:
        return None if _json_lines(data) else "it is no whole JSON document"
    return None


def _json_lines(data: bytes) -> bool:
    try:
        return len([json.loads(line) for line in data.splitlines() if line.strip()]) > 1
    except ValueError:
        return False


FORMAT_CHECKS: Mapping[str, Callable[[Path], str | None]] = {
    **dict.fromkeys((".npz", ".zip", ".keras"), _archive_flaw),
    **dict.fromkeys((".pt", ".pth", ".ckpt"), _torch_flaw),
    **dict.fromkeys((".pkl", ".pickle", ".pdparams", ".pdopt"), _zip_or_pickle),
    ".bin": _zip_or_else,
    ".joblib": joblib_defect,
    ".index": _table_flaw,
    ".safetensors": _safetensors_flaw,
    ".json": _json_flaw,
}
"""Checks of formats that can tell whether they are whole, by suffix."""


def missing_shards(root: Path, members: Iterable[str]) -> str | None:
    """Which file an index names that is not there: Hugging Face's `*.index.json` lists its shards.

    Source: transformers, `modeling_utils.py` (`weight_map` of `model.safetensors.index.json`).
    """
    names = set(members)
    for name in sorted(names):
        if name.endswith(".index.json"):
            folder = name.rpartition("/")[0]
            absent = sorted({f"{folder}/{shard}".lstrip("/") for shard in _shards(root / name)} - names)
            if absent:
                return f"{name} lists {absent[0]}, which is not there"
    return None


def _shards(index: Path) -> set[str]:
    """The files that an index lists, none where it is an index of another kind or has gone."""
    try:
        found = json.loads(index.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    weights = found.get("weight_map") if isinstance(found, dict) else None
    return {str(shard) for shard in weights.values()} if isinstance(weights, dict) else set()
