"""Pointers: small files at the top by which a trainer remembers which checkpoint is its newest.

A pointer alone is no checkpoint: restored by itself it names what is not there. It belongs to the checkpoint
that it names, so that both are committed and come back together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

POINTERS: Mapping[str, str] = {
    "latest": "DeepSpeed: the tag, which is a directory's name",
    "latest_checkpointed_iteration.txt": "Megatron: the iteration, whose directory is `iter_%07d`",
    "checkpoint": "TensorFlow's Saver: `model_checkpoint_path`, first",
    "last_checkpoint": "fvcore and detectron2: a file's name",
}
"""Names of pointer files, each with who writes it and what is in it."""

POINTER_BYTES = 4096
"""A file up to this size may be a pointer."""
TOKEN = re.compile(r"""[^\s"':/]+""")


def is_pointer(name: str, size: int) -> bool:
    """Whether a file of that name and size, in bytes, is a pointer and no data."""
    return name in POINTERS and size <= POINTER_BYTES


def read_small(root: Path, names: Iterable[str]) -> dict[str, str]:
    """The texts of files below `root`, by name; those that have gone or cannot be read are left out."""
    texts = {}
    for name in names:
        try:
            texts[name] = (root / name).read_bytes()[:POINTER_BYTES].decode(errors="replace")
        except OSError:
            continue
    return texts


def is_text(text: str) -> bool:
    """Whether what was read is text: a small checkpoint that is called like a pointer is none."""
    return "\ufffd" not in text and "\0" not in text


def read_links(root: Path) -> dict[str, str]:
    """What the symbolic links at the top of `root` point to, by name.

    A link is no file of any checkpoint, since a store has none: it says which one its trainer calls the last.
    Lightning with `save_last="link"` makes `last.ckpt` so.
    """
    found = {}
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            found[path.name] = str(path.readlink())
        except OSError:
            continue
    return found


def named(text: str, names: Collection[str]) -> str | None:
    """The first of `names` that a pointer's text names, None where there is none.

    A name may be followed by a suffix (`model_0001.pth`), since a checkpoint is called by its stem.
    """
    for token in TOKEN.findall(text):
        spelled = (token, Path(token).stem, f"iter_{int(token):07d}" if token.isdecimal() else token)
        found = next((name for name in spelled if name in names), None)
        if found is not None:
            return found
    return None
