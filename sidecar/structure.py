"""Checks of file formats that can tell whether a file is whole.

A torn file must never pass for a sound one; what a format cannot tell is left to the time that a file has
been quiet.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ZIP_MAGIC = b"PK\x03\x04"
LONGEST_HEADER = 100_000_000
"""Bytes of a safetensors header. Source: the safetensors format description."""


def flaw(path: Path) -> str | None:
    """Why a file cannot be whole by its own format, None where it is or cannot tell."""
    check = STRUCTURES.get(path.suffix)
    if check is None:
        return None
    try:
        return check(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except RecursionError:
        return None  # nested too deeply for the parser, so it cannot tell


def _zip_flaw(path: Path) -> str | None:
    """torch.save and NumPy's savez write zip archives: the directory at the end is written at exit.

    An archive may hold another one, whose own end must not pass for the end of the whole: the directory must
    begin with what lies at the very start. torch's older format is a pickle without such a mark and cannot
    tell. Source: torch/serialization.py (`_open_zipfile_writer_file`), numpy/lib/_npyio_impl.py (`_savez`).
    """
    with path.open("rb") as file:
        head = file.read(len(ZIP_MAGIC))
    if not head:
        return "it is empty"
    if not ZIP_MAGIC.startswith(head):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            first = min((member.header_offset for member in archive.infolist()), default=None)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        first = None
    return None if first == 0 else "its zip directory is not written yet"


def _safetensors_flaw(path: Path) -> str | None:
    """The header's offsets say how long the file must be. Source: the safetensors format description."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if length > size - 8:
            return "its header is not written yet"
        try:
            expected = 8 + length + _tensors_end(json.loads(file.read(min(length, LONGEST_HEADER))))
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


STRUCTURES: Mapping[str, Callable[[Path], str | None]] = {
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".npz", ".zip", ".keras"), _zip_flaw),
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
