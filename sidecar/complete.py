"""Which files form a checkpoint, and when it is whole. Pure rules over names; structure checks read files.

A checkpoint is what lies under one name at the top of the checkpoint directory: a directory with all in it,
or the files that share a stem (`epoch-3.pdparams` and `epoch-3.pdopt`). It is whole when

* none of its names says that it is unfinished,
* every file has been quiet for a while after its last close, and
* every file whose format can tell says that it is whole.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from podferry.sidecar.snapshot import Identity, Seen

UNFINISHED: Mapping[str, str] = {
    "*.tmp": "torch DCP's .metadata.tmp, and the usual habit of writing aside and renaming",
    "*.tmp.*": "Lightning and TensorFlow habits: a random suffix after .tmp",
    "*.partial": "download and copy tools",
    "*.part": "download and copy tools",
    "*.incomplete": "huggingface_hub",
    "*.orbax-checkpoint-tmp*": "Orbax renames the directory at the end",
    ".*": "hidden at the top: editors, safetensors' sibling temporary, TensorFlow's .tempstate",
    "tmp*": "tempfile's names, at the top only",
}
"""Names of unfinished files and directories, each with who uses it."""

AT_THE_TOP_ONLY = frozenset({".*", "tmp*"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint as it lies in the directory.

    Attributes:
        name: The directory's name or the files' common stem.
        files: Relative names with their identities.
    """

    name: str
    files: tuple[tuple[str, Identity], ...]

    @property
    def bytes(self) -> int:
        """Sum of the sizes."""
        return sum(identity.size for _, identity in self.files)


def candidate_name(name: str) -> str:
    """The checkpoint that a file belongs to, by its name relative to the checkpoint directory."""
    top, slash, _ = name.partition("/")
    return top if slash else Path(top).stem


def unfinished(name: str) -> bool:
    """Whether a relative name says of itself that it is not done."""
    top, *rest = name.split("/")
    below = [pattern for pattern in UNFINISHED if pattern not in AT_THE_TOP_ONLY]
    return _matches(top, UNFINISHED) or any(_matches(part, below) for part in rest)


def _matches(part: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in patterns)


def candidates(files: Mapping[str, Identity]) -> dict[str, Candidate]:
    """The checkpoints that files form, by name.

    A checkpoint with an unfinished file in its directory is left out; unfinished names at the top are not
    part of any.
    """
    groups: dict[str, list[tuple[str, Identity]]] = {}
    held_back: set[str] = set()
    for name in sorted(files):
        if not unfinished(name):
            groups.setdefault(candidate_name(name), []).append((name, files[name]))
        elif "/" in name:
            held_back.add(candidate_name(name))
    return {name: Candidate(name, tuple(held)) for name, held in groups.items() if name not in held_back}


def quiet_at(files: Iterable[Seen], settle: float, settle_unseen: float) -> float:
    """When the last of the files will have been quiet long enough, on the clock of `Seen.since`."""
    return max(seen.since + (settle if seen.closed else settle_unseen) for seen in files)


def flaw(path: Path) -> str | None:
    """Why a file cannot be whole by its own format, None where it is or cannot tell."""
    check = STRUCTURES.get(path.suffix)
    if check is None:
        return None
    try:
        return check(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _zip_flaw(path: Path) -> str | None:
    """torch.save and NumPy's savez write zip archives: the directory at the end is written at exit.

    Source: torch/serialization.py (`_open_zipfile_writer_file`), numpy/lib/_npyio_impl.py (`_savez`).
    torch's older format is a pickle without such a mark and cannot tell.
    """
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return None if path.stat().st_size else "it is empty"
    return None if zipfile.is_zipfile(path) else "its zip directory is not written yet"


def _safetensors_flaw(path: Path) -> str | None:
    """The header's offsets say how long the file must be. Source: the safetensors format description."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if length > size - 8:
            return "its header is not written yet"
        try:
            header = json.loads(file.read(length))
            end = max(
                (tensor["data_offsets"][1] for key, tensor in header.items() if key != "__metadata__"),
                default=0,
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            return "its header is damaged"
    expected = 8 + length + end
    return None if size == expected else f"it has {size} bytes, its header says {expected}"


def _json_flaw(path: Path) -> str | None:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return "it is no whole JSON document"
    return None


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
            shards = json.loads((root / name).read_bytes()).get("weight_map", {}).values()
            absent = sorted({f"{folder}/{shard}".lstrip("/") for shard in shards} - names)
            if absent:
                return f"{name} lists {absent[0]}, which is not there"
    return None
