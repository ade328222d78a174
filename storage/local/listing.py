"""Lists directories of the local store, in which other programs may create, rename and remove meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podferry.contract.errors import NotFound, Unavailable
from podferry.storage.local.files import check_inside, is_of_juicefs
from podferry.storage.object_names import is_temporary, join
from podferry.storage.walk import Directory


def scan(path: Path, claim: Path | None) -> list[os.DirEntry[str]]:
    """What is in a directory; of a claim, without links that lead out of it."""
    try:
        with os.scandir(path) as items:
            found = sorted((item for item in items if not is_of_juicefs(item)), key=lambda item: item.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    for item in found:
        if claim is not None and item.is_symlink():
            check_inside(Path(item.path), claim)
    return found


def names_in(path: Path, directory: str) -> Directory:
    """The names in a directory as they are spelled, all of them as `unsized`.

    Args:
        path: Where it is.
        directory: Its name at the store.
    """
    try:
        with os.scandir(path) as items:
            return Directory(unsized=tuple(join(directory, item.name) for item in items))
    except (FileNotFoundError, NotADirectoryError):
        return Directory()


def is_object(item: os.DirEntry[str]) -> bool:
    """Whether an entry of a directory is a file that counts."""
    return item.is_file() and not is_temporary(item.name)


def files_below(
    path: Path, above: frozenset[tuple[int, int]], claim: Path | None
) -> Iterator[tuple[str, os.stat_result]]:
    """Files below a directory; links are followed, but not to a directory above them.

    Raises:
        NotFound: A link leads nowhere.
        Unavailable: A name has become another one meanwhile: what it has would be missing.
    """
    with suppress(FileNotFoundError):
        here = path.stat()
        above |= {(here.st_dev, here.st_ino)}
    items = scan(path, claim)
    for item in items:
        status = _status_of(item)
        if status is None:
            _check_not_renamed(path, items, item)
        elif item.is_dir():
            if (status.st_dev, status.st_ino) not in above:
                found = files_below(Path(item.path), above, claim)
                yield from ((join(item.name, name), each) for name, each in found)
                if not _is_still(item, status):
                    _check_not_renamed(path, items, item)
        elif is_object(item):
            yield item.name, status


def _status_of(item: os.DirEntry[str]) -> os.stat_result | None:
    """The status of a directory's entry, or None if it has just been deleted.

    Raises:
        NotFound: It is a dangling link: a file is missing, perhaps because a volume is not mounted.
    """
    try:
        return item.stat()
    except FileNotFoundError:
        target = _target_of(item)
    if target is not None:
        remedy = "Mount the volume of its target, or remove it"
        raise NotFound.of(f"{item.path} is a dangling link", target, remedy)
    try:
        return os.stat(item.path)  # noqa: PTH116 - as above
    except FileNotFoundError:
        return None


def _target_of(item: os.DirEntry[str]) -> str | None:
    """What a link leads to; None if there is none any more."""
    try:
        return os.readlink(item.path)  # noqa: PTH115 - a Path for each entry would cost more than the call
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EINVAL}:  # deleted, or created again as something else
            raise
        return None


def _is_still(item: os.DirEntry[str], before: os.stat_result) -> bool:
    """Whether a directory has kept its name."""
    try:
        now = os.stat(item.path)  # noqa: PTH116 - as above
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino)


def _check_not_renamed(parent: Path, items: list[os.DirEntry[str]], item: os.DirEntry[str]) -> None:
    """Raise `Unavailable` if what is gone has another name now, under which it is not listed."""
    if is_temporary(item.name):
        return
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(parent) as now:
        for other in now:
            if other.inode() != item.inode() or other.name == item.name:
                continue
            if item.is_dir() or all(other.name != listed.name for listed in items):
                what = f"{item.path} was renamed while {parent} was listed"
                remedy = "List it again when no program renames what is in it"
                raise Unavailable.of(what, f"it is {other.name} now", remedy)
