"""File operations of the local store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podferry.contract.claims import SCHEME as CLAIM_SCHEME
from podferry.contract.errors import BucketNotFound, Corrupt, InvalidSpec, Refused
from podferry.contract.uri import Uri
from podferry.storage.errors.filesystem import not_a_directory, not_a_file
from podferry.storage.errors.translate import StoreLocation, translate
from podferry.storage.object_names import temporary_name

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""How file systems refuse hard links that they do not have. Source: link(2); FUSE answers ENOSYS."""

JUICEFS_NAMES = frozenset({".accesslog", ".config", ".control", ".stats", ".trash"})
JUICEFS_INODES = 0x7FFFFFFF00000000
"""The smallest number of JuiceFS's own files. Source: juicefs, `pkg/vfs/internal.go`, `minInternalNode`."""


def check_root_directory(uri: Uri, directory: Path) -> None:
    """Check that the first directory of the path exists: it counts as the bucket.

    Raises:
        BucketNotFound: It does not, or it is a file.
    """
    if not directory.is_dir():
        if directory.exists():
            raise BucketNotFound(*not_a_directory(directory).problems)
        remedy = "Create it, or check the path and its mount"
        if uri.scheme == CLAIM_SCHEME:
            remedy = (
                "In a pod, podferry's webhook mounts the claim; elsewhere, name a directory of its volume"
            )
        raise BucketNotFound.of(f"there is no directory {directory}", str(uri), remedy)


def check_inside(path: Path, mount: Path) -> None:
    """Check that links do not lead out of a claim: there are the agent's own files, and other Secrets.

    Raises:
        Refused: One does.
    """
    target = os.path.realpath(path)
    if not f"{target}/".startswith(f"{os.path.realpath(mount)}/"):
        remedy = "Link to a path in the volume, relative to the link, or copy the target there"
        raise Refused.of(f"{path} is a link out of the claim", f"to {target}", remedy)


def is_of_juicefs(item: os.DirEntry[str]) -> bool:
    """Whether JuiceFS itself shows this in its top directory: it is no data, and root alone may read it."""
    return item.name in JUICEFS_NAMES and item.inode() >= JUICEFS_INODES


def make_parents(location: StoreLocation, name: str, target: Path) -> None:
    """Create the directories above a file that is to be written.

    Raises:
        InvalidSpec: One of them exists as a file, or the file as a directory.
        FerryError: Creating them failed.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise not_a_directory(target.parent) from error
    except OSError as error:
        raise translate(error, location, name, "created") from error
    if target.is_dir():
        raise not_a_file(target)


def publish_file(
    location: StoreLocation, root: Path, name: str, fill: Callable[[int], None], *, exclusive: bool = False
) -> None:
    """Write a file under a temporary name, sync it, and give it its name.

    Args:
        location: For errors.
        root: The directory that `name` is relative to.
        name: Where the file appears.
        fill: Writes the content to an open file.
        exclusive: Refuse a name that is taken, instead of replacing the file.

    Raises:
        FerryError: Translated.
    """
    target, temporary = root / name, root / temporary_name(name)
    make_parents(location, name, target)
    try:
        with temporary.open("xb", buffering=0) as file:
            fill(file.fileno())
            os.fsync(file.fileno())
        if exclusive:
            _link(temporary, target)
        else:
            temporary.replace(target)
    except OSError as error:
        # Translated here, so that a full disk is measured before the temporary file is removed.
        raise translate(error, location, name, "written") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(target.parent)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, which must be free.

    Raises:
        InvalidSpec: The file system has no hard links.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        what = f"the file system of {target.parent} has no hard links, which exclusive commits need"
        remedy = "Use a volume that has them (NFS, CephFS, JuiceFS, a disk), or another store"
        raise InvalidSpec.of(what, os.strerror(error.errno), remedy) from error


def read_exactly(descriptor: int, view: memoryview, start: int, name: str) -> None:
    """Fill a buffer with a file's bytes from `start`.

    Raises:
        Corrupt: The file has fewer.
    """
    done = 0
    while done < len(view):
        count = os.preadv(descriptor, [view[done:]], start + done)
        if not count:
            raise Corrupt.of(f"{name} became shorter while it was read", f"{done} of {len(view)} bytes")
        done += count


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of a buffer at the file's position."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_at(descriptor: int, data: bytes | memoryview, start: int) -> None:
    """Write all of a buffer from `start`; several threads may do so in parallel."""
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, start)
        view, start = view[done:], start + done


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: Path) -> None:
    """Remove a file if it exists."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.unlink()
