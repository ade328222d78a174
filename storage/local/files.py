"""What stores of local files do to files, with errors in the words of file systems."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podferry.contract.errors import BucketNotFound, Corrupt
from podferry.contract.uri import Uri
from podferry.storage.errors.filesystem import not_a_directory, not_a_file
from podferry.storage.errors.translate import StoreLocation, translate


def check_root_directory(uri: Uri, top: Path) -> None:
    """Make sure that the first directory of the path is there: it counts as the bucket.

    Raises:
        BucketNotFound: It is not, or it is a file.
    """
    if not top.is_dir():
        if top.exists():
            raise BucketNotFound(*not_a_directory(top).problems)
        remedy = "Create it, or check the path and its mount"
        raise BucketNotFound.of(f"there is no directory {top}", str(uri), remedy)


def make_parents(location: StoreLocation, name: str, target: Path) -> None:
    """Make the directories above a file that is to be written.

    Raises:
        InvalidWish: A file has the name of one of them, or a directory that of the file.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise not_a_directory(target.parent) from error
    except OSError as error:
        raise translate(error, location, name, "made") from error
    if target.is_dir():
        raise not_a_file(target)


def read_exactly(descriptor: int, view: memoryview, start: int, name: str) -> None:
    """Fill a buffer with what a file holds from `start`.

    Raises:
        Corrupt: The file ends before.
    """
    done = 0
    while done < len(view):
        got = os.preadv(descriptor, [view[done:]], start + done)
        if not got:
            raise Corrupt.of(f"{name} became shorter while it was read", f"{done} of {len(view)} bytes")
        done += got


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write a whole buffer where the file stands."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_at(descriptor: int, data: bytes | memoryview, start: int) -> None:
    """Write a whole buffer from `start`; several threads may do so at once."""
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, start)
        view, start = view[done:], start + done


def sync_directory(path: Path) -> None:
    """Make the names in a directory outlive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: Path) -> None:
    """Remove a file; one that is not there is passed over."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.unlink()
