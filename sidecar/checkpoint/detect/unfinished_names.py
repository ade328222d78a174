"""Names of files and directories that belong to no checkpoint: unfinished ones, each with its origin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

TEMPFILE = "tmp" + "[a-z0-9_]" * 8
UNFINISHED_NAMES: Mapping[str, str] = {
    "*.tmp": "torch DCP's .metadata.tmp, and the common write-then-rename idiom",
    "*.tmp.*": "Lightning and TensorFlow: a random suffix after .tmp",
    "*.tmp" + "[0-9a-f]" * 32: "TensorFlow's atomic writes: `checkpoint`, saved_model.pb (file_io.py)",
    "*.partial": "download and copy tools",
    "*.part": "download and copy tools",
    "*.incomplete": "huggingface_hub",
    "*.orbax-checkpoint-tmp*": "Orbax renames the directory at the end",
    "tmp-checkpoint-*": "Hugging Face's Trainer (transformers 4.36 to 4.38): the directory before its rename",
    "*.__lock": "tensorstore, used by Orbax: a file before its rename",
    "*.tempstate*": "TensorFlow's Saver: a bundle before its rename",
    ".tmp*": "Rust's tempfile: safetensors' temporary file in the same directory (0.8.0 writes .tmpqowx2b)",
    ".*": "hidden files at the top: editors, copy tools",
    TEMPFILE: "Python's tempfile (tempfile.py, _RandomNameSequence), at the top only",
    f"{TEMPFILE}.*": "the same with a suffix, at the top only",
    "*_.gstmp": "gsutil and gcloud storage: a download before its rename",
    ".~tmp~": "rsync with --delay-updates",
    "*_temp": "TensorFlow's shards before they are merged (functional_saver.py), at the top only",
}
"""Name patterns of unfinished files and directories, each with its origin."""
IGNORED_NAMES: Mapping[str, str] = {
    "zero_to_fp32.py": "DeepSpeed copies this script of its own to the top at every save",
    "zero_to_torch.py": "the same, since 0.19",
}
"""Names at the top that belong to no checkpoint."""
TOP_LEVEL_ONLY = frozenset({".*", TEMPFILE, f"{TEMPFILE}.*", "*_temp"})
RSYNC_NAME = re.compile(r"\..+\.(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{6}")
"""rsync's file before its rename (receiver.c, `get_tmpname`): `.NAME.` and six random letters and digits.

One in 26 has no capital letter and is not recognised: `.model.config` is no temporary file.
"""


def is_unfinished(name: str) -> bool:
    """Whether a relative name is that of an unfinished file."""
    top, *rest = name.split("/")
    below = [pattern for pattern in UNFINISHED_NAMES if pattern not in TOP_LEVEL_ONLY]
    inner = any(_matches(part, below) or RSYNC_NAME.fullmatch(part) for part in rest)
    return inner or _matches(top, UNFINISHED_NAMES)


def is_unfinished_at_top(name: str) -> bool:
    """Whether the first part of a relative name is that of an unfinished file or directory."""
    return _matches(name.partition("/")[0], UNFINISHED_NAMES)


def _matches(part: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in patterns)
