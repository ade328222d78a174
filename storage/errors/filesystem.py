"""What is wrong with a local file, in the words of file systems: no credentials, no objects, no buckets."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    FerryError,
    InvalidSpec,
    NotFound,
    Unavailable,
)
from podferry.contract.quantity import format_bytes

WRITE_OPERATIONS = frozenset({"made", "written"})
"""What is done to a file that needs its place to take writes."""
WRITABLE_REMEDY = "Choose a place that takes writes"


def filesystem_error(kind: str, error: OSError, path: Path, done: str = "") -> FerryError:
    """The error that a file system's refusal stands for.

    Args:
        kind: What happened, as `podferry.storage.errors.translate.error_kind` says it.
        error: What was raised.
        path: The file or directory that it is about.
        done: What was to be done to it: `made`, `written`, `read`, `removed`; empty where that is not known.
    """
    said = os.strerror(error.errno) if error.errno else type(error).__name__
    if kind == "full":
        return _full(path, said)
    if kind == "exists":
        return AlreadyExists.of(
            f"{path} exists already", said, "Choose another name, or look at what is there"
        )
    if kind == "missing" and done not in WRITE_OPERATIONS:
        return NotFound.of(f"there is no file {path}", said, "Check the name")
    # Whether the directory is there already makes no difference to somebody who may not write.
    verb = "written" if error.errno == errno.EROFS else done or "reached"
    kinds, remedy = _refusal(kind, error.errno)
    return kinds.of(f"{path} cannot be {verb}", said, remedy)


def _refusal(kind: str, number: int | None) -> tuple[type[FerryError], str]:
    if kind == "denied":
        readonly = number == errno.EROFS
        return (
            AccessDenied,
            WRITABLE_REMEDY if readonly else "Give this user the right to it, or choose another place",
        )
    if kind == "missing":
        return InvalidSpec, WRITABLE_REMEDY
    if kind == "name":
        return InvalidSpec, "Choose another name: a file system takes parts of up to 255 bytes"
    if kind == "unsupported":
        return InvalidSpec, "Choose a place on another file system"
    return Unavailable, "Check the disk and its mount, or try again later"


def _full(path: Path, said: str) -> FerryError:
    there = next(above for above in (path, *path.parents) if above.exists())
    total, _, free = shutil.disk_usage(there)
    measured = f"{format_bytes(free)} free of {format_bytes(total)}; {said}"
    return Unavailable.of(f"no space left at {path}", measured, "Free space there, or choose another place")


def not_a_directory(path: Path) -> InvalidSpec:
    """For a place where files should lie, with the part of its path that is a file."""
    there = next((above for above in (path, *path.parents) if above.exists() and not above.is_dir()), path)
    return InvalidSpec.of(
        f"{there} is a file, not a directory", remedy="Remove or rename it, or choose another place"
    )


def not_a_file(path: Path) -> InvalidSpec:
    """For a file that should be written, where a directory has its name."""
    return InvalidSpec.of(f"{path} is a directory, not a file", remedy="Remove or rename it")
