"""What is wrong with a local file, in the terms of file systems: no credentials, objects or buckets."""

from __future__ import annotations

import errno
import os
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

WRITE_OPERATIONS = frozenset({"created", "written"})


def filesystem_error(kind: str, error: OSError, path: Path, operation: str = "") -> FerryError:
    """The error for an `OSError`.

    Args:
        kind: What happened, as `podferry.storage.errors.kinds.error_kind` returns it.
        error: What was raised.
        path: The file or directory.
        operation: The operation that failed: `created`, `written`, `read`, `removed`; empty if unknown.
    """
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    if kind == "full":
        return _no_space(path, reason)
    if kind == "exists":
        remedy = "Choose another name, or inspect the existing file"
        return AlreadyExists.of(f"{path} already exists", reason, remedy)
    if kind == "missing" and operation not in WRITE_OPERATIONS:
        return NotFound.of(f"there is no file {path}", reason, "Check the name")
    # On a read-only file system it makes no difference whether the directory exists.
    failed = "written" if error.errno == errno.EROFS else operation or "reached"
    error_type, remedy = _type_and_remedy(kind, error.errno)
    return error_type.of(f"{path} cannot be {failed}", reason, remedy)


def _type_and_remedy(kind: str, number: int | None) -> tuple[type[FerryError], str]:
    if kind == "denied":
        if number == errno.EROFS:
            return AccessDenied, "Choose a writable location"
        return AccessDenied, "Grant this user access, or choose another location"
    if kind == "missing":
        return InvalidSpec, "Choose a writable location"
    if kind == "name":
        return InvalidSpec, "Choose another name: each part of a path may have up to 255 bytes"
    if kind == "unsupported":
        return InvalidSpec, "Choose a location on another file system"
    return Unavailable, "Check the disk and its mount, or try again later"


def _no_space(path: Path, reason: str) -> FerryError:
    from shutil import disk_usage  # noqa: PLC0415 - it imports codecs

    existing = next(above for above in (path, *path.parents) if above.exists())
    total, _, free = disk_usage(existing)
    measured = f"{format_bytes(free)} free of {format_bytes(total)}; {reason}"
    remedy = "Free space there, or choose another location"
    return Unavailable.of(f"no space left at {path}", measured, remedy)


def not_a_directory(path: Path) -> InvalidSpec:
    """The error if a part of a directory's path is a file; it names that part."""
    file = next((above for above in (path, *path.parents) if above.exists() and not above.is_dir()), path)
    remedy = "Remove or rename it, or choose another location"
    return InvalidSpec.of(f"{file} is a file, not a directory", remedy=remedy)


def not_a_file(path: Path) -> InvalidSpec:
    """The error if a file is to be written under the name of a directory."""
    return InvalidSpec.of(f"{path} is a directory, not a file", remedy="Remove or rename it")
