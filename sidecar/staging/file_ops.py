"""System calls of the stage. Each file costs some microseconds: what runs once per file uses no `Path`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PARTIAL_DIR = ".podferry-partial"
"""Holds partial files, on the stage's own file system; removed when the stage is complete."""
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL
NOT_A_FILE = -1
"""Size that is reported for a link, a pipe or another special file."""


def list_files(root: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The name and size of everything except directories; partial files are skipped."""
    with os.scandir(root) as found:
        children = list(found)
    for child in children:
        name = prefix + child.name
        if child.is_dir(follow_symlinks=False):
            if name != PARTIAL_DIR:
                yield from list_files(child.path, name + "/")
        else:
            regular = child.is_file(follow_symlinks=False)
            yield name, child.stat().st_size if regular else NOT_A_FILE


def remove_empty_parents(root: Path, name: str) -> None:
    """Remove the directories above a removed file, up to the first that is not empty."""
    parent = name.rpartition("/")[0]
    while parent:
        try:
            (root / parent).rmdir()
        except OSError:  # not empty, or already removed
            return
        parent = parent.rpartition("/")[0]


def remove_tree(path: Path) -> None:
    """Remove a directory with everything in it, as far as that is possible; without following links."""
    try:
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)  # noqa: PTH106 - as above
    except OSError:  # it has files, which is rare
        import shutil  # noqa: PLC0415 - 2 ms: with every format of archives that it could make

        shutil.rmtree(path, ignore_errors=True)


def create_file(path: str, mode: int = 0o600) -> int:
    """Open a new file; one that an earlier attempt left under its name is removed."""
    try:
        return os.open(path, CREATE_FLAGS, mode)
    except FileExistsError:
        os.unlink(path)  # noqa: PTH108 - once per file, see above
        return os.open(path, CREATE_FLAGS, mode)


def current_umask() -> int:
    """The umask of this process; reading it sets it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_all(descriptor: int, data: memoryview, start: int) -> None:
    """Write all of `data`; `os.pwrite` may write less."""
    while len(data):
        written = os.pwrite(descriptor, data, start)
        data, start = data[written:], start + written
