"""Checks of file formats that show their own end.

A torn file must never pass as complete. Formats that do not show their end are left to the time a file has
been quiet, and to the sizes of earlier files (`podferry.sidecar.checkpoint.detect.history`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from podferry.sidecar.checkpoint.detect.formats.hdf5 import hdf5_verdict
from podferry.sidecar.checkpoint.detect.formats.joblib_dump import joblib_verdict
from podferry.sidecar.checkpoint.detect.formats.json_document import json_verdict
from podferry.sidecar.checkpoint.detect.formats.keras_archive import keras_verdict
from podferry.sidecar.checkpoint.detect.formats.lightgbm_model import SNAPSHOT, lightgbm_verdict
from podferry.sidecar.checkpoint.detect.formats.numpy_files import npy_verdict, npz_verdict
from podferry.sidecar.checkpoint.detect.formats.onnx_model import onnx_verdict
from podferry.sidecar.checkpoint.detect.formats.safetensors import safetensors_verdict
from podferry.sidecar.checkpoint.detect.formats.tar_archive import gzip_verdict, tar_verdict
from podferry.sidecar.checkpoint.detect.formats.tensorflow_index import index_verdict
from podferry.sidecar.checkpoint.detect.formats.torch_archive import (
    maybe_torch_verdict,
    torch_or_tar_verdict,
    torch_verdict,
    zip_or_pickle_verdict,
)
from podferry.sidecar.checkpoint.detect.formats.ubjson import ubjson_verdict
from podferry.sidecar.checkpoint.detect.formats.verdict import (
    INCONCLUSIVE,
    FormatVerdict,
    Inconclusive,
    Torn,
    incomplete,
)
from podferry.sidecar.checkpoint.detect.formats.zip_archive import zip_verdict
from podferry.sidecar.checkpoint.detect.formats.zstd_stream import zstd_verdict

__all__ = ["FORMAT_CHECKS", "INCONCLUSIVE", "FormatVerdict", "check_format", "missing_shards"]


def check_format(path: Path) -> FormatVerdict:
    """Check a file by the format of its suffix."""
    check = lightgbm_verdict if path.suffix.startswith(SNAPSHOT) else FORMAT_CHECKS.get(path.suffix)
    if check is None:
        return INCONCLUSIVE
    try:
        return check(path)
    except Torn as torn:
        return incomplete(str(torn))
    except (Inconclusive, RecursionError):  # nested too deeply for the parser
        return INCONCLUSIVE
    except OSError as error:
        return incomplete(f"it cannot be read: {error.strerror}")


FORMAT_CHECKS: Mapping[str, Callable[[Path], FormatVerdict]] = {
    **dict.fromkeys((".pt", ".pth", ".ckpt"), torch_verdict),
    **dict.fromkeys((".pkl", ".pickle", ".pdparams", ".pdopt"), zip_or_pickle_verdict),
    **dict.fromkeys((".h5", ".hdf5", ".nc"), hdf5_verdict),
    **dict.fromkeys((".tgz", ".nemo"), tar_verdict),
    **dict.fromkeys((".ubj", ".bst"), ubjson_verdict),
    ".bin": maybe_torch_verdict,
    ".gz": gzip_verdict,
    ".index": index_verdict,
    ".joblib": joblib_verdict,
    ".json": json_verdict,
    ".keras": keras_verdict,
    ".npy": npy_verdict,
    ".npz": npz_verdict,
    ".onnx": onnx_verdict,
    ".safetensors": safetensors_verdict,
    ".tar": torch_or_tar_verdict,
    ".txt": lightgbm_verdict,
    ".zip": zip_verdict,
    ".zst": zstd_verdict,
}
"""By suffix. Each may raise `Torn`, `Inconclusive` or `OSError`."""


DCP_METADATA = ".metadata"
DCP_SHARD = re.compile(rb"__\d+_\d+\.distcp")
MAX_METADATA_BYTES = 64 * 1024**2
"""A larger list of tensors is not read: a thousand of them take about 1 MiB."""
WORLD = "; if another pod has it, set podferry.io/world to the number of pods"


def missing_shards(root: Path, members: Iterable[str], *, whole: bool = False) -> str | None:
    """The first missing file that an index lists: Hugging Face's `*.index.json`, torch DCP's `.metadata`.

    Sources: transformers, `modeling_utils.py` (`weight_map` of `model.safetensors.index.json`);
    torch/distributed/checkpoint/filesystem.py (`_StorageInfo.relative_path`), seen with two ranks in a
    directory each.

    Args:
        root: The checkpoint directory.
        members: The checkpoint's files.
        whole: No other pod has a part of it, so DCP's shards of all ranks must be here.
    """
    names = set(members)
    for name in sorted(names):
        folder, _, last = name.rpartition("/")
        listed: set[str] = set()
        if name.endswith(".index.json"):
            listed = _listed_shards(root / name)
        elif whole and last == DCP_METADATA:
            listed = _dcp_shards(root / name)
        if missing := sorted({f"{folder}/{shard}".lstrip("/") for shard in listed} - names):
            return f"{name} lists {missing[0]}, which is missing{WORLD if last == DCP_METADATA else ''}"
    return None


def _dcp_shards(metadata: Path) -> set[str]:
    """The shards that a pickle of DCP names: each name is in it as a text, nothing needs to be loaded."""
    try:
        small = metadata.stat().st_size <= MAX_METADATA_BYTES
        data = metadata.read_bytes() if small else b""
    except OSError:
        return set()
    return {shard.decode() for shard in DCP_SHARD.findall(data)}


def _listed_shards(index: Path) -> set[str]:
    """The files that an index lists; none for an index of another kind or a removed one."""
    try:
        found = json.loads(index.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    weights = found.get("weight_map") if isinstance(found, dict) else None
    return {str(shard) for shard in weights.values()} if isinstance(weights, dict) else set()
