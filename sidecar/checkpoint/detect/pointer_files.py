"""Pointer files: small files at the top in which a trainer records its newest checkpoint.

A pointer is not a checkpoint: restored alone, it names something missing. It belongs to the checkpoint that
it names, so that both are committed and restored together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from podferry.contract.destination.series import without_shards

POINTERS: Mapping[str, str] = {
    "latest": "DeepSpeed: the tag, which is a directory's name",
    "latest_checkpointed_iteration.txt": "Megatron: the iteration, whose directory is `iter_%07d`",
    "checkpoint": "TensorFlow's Saver: `model_checkpoint_path`, first",
    "last_checkpoint": "fvcore and detectron2: a file's name",
}
"""Names of pointer files, each with its framework and content."""

POINTER_BYTES = 4096
"""Maximum size of a pointer file."""
TOKEN = re.compile(r"""[^\s"':/]+""")


def is_pointer(name: str, size: int) -> bool:
    """Whether a file of that name and size in bytes is a pointer, not data."""
    return name in POINTERS and size <= POINTER_BYTES


def read_small(root: Path, names: Iterable[str]) -> dict[str, str]:
    """The texts of files below `root`, by name; files that cannot be read are left out."""
    texts = {}
    for name in names:
        try:
            texts[name] = (root / name).read_bytes()[:POINTER_BYTES].decode(errors="replace")
        except OSError:
            continue
    return texts


def is_text(text: str) -> bool:
    """Whether a file's content is text: a small checkpoint with the name of a pointer is not."""
    return "\ufffd" not in text and "\0" not in text


def read_links(root: Path) -> dict[str, str]:
    """The targets of the symbolic links at the top of `root`, by name.

    A link is not part of any checkpoint, since stores have no links, but it may name the trainer's last one:
    Lightning with `save_last="link"` creates such a `last.ckpt`.
    """
    found = {}
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            found[path.name] = str(path.readlink())
        except OSError:
            continue
    return found


def find_checkpoint_name(text: str, names: Collection[str]) -> str | None:
    """The first of `names` in a pointer's text, or None.

    A suffix may follow the name (`model_0001.pth`), since a checkpoint is named by its stem.
    """
    for token in TOKEN.findall(text):
        stem, iteration = Path(token).stem, f"iter_{int(token):07d}" if token.isdecimal() else token
        spellings = (token, stem, without_shards(stem), iteration)
        for name in spellings:
            if name in names:
                return name
    return None
