"""Locks that show whether a process lives: the kernel releases them when it ends, however it ends.

They are those of flock(2), on a file or a directory. systemd-tmpfiles leaves a locked directory alone, and
all that is below it (tmpfiles.d(5), "Age").
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_ours: set[int] = set()


def acquire(path: Path, *, inheritable: bool = False) -> int:
    """Lock a directory, or a file, which is created; wait until no other process holds it.

    Args:
        path: The directory or file.
        inheritable: A child that gets the descriptor (`pass_fds`) holds the lock, too. Otherwise none does,
            forked or not: a forked data loader may outlive its parent.

    Returns:
        The lock's descriptor, for `release`.
    """
    number = _open(path, create=True)
    fcntl.flock(number, fcntl.LOCK_EX)
    if not inheritable:
        _ours.add(number)
    return number


def try_acquire(path: Path) -> int | None:
    """Lock a directory or file without waiting; None if another process holds the lock or has removed it."""
    try:
        number = _open(path, create=False)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    _ours.add(number)
    return number


def release(lock: int) -> None:
    """Release a lock of this process."""
    _ours.discard(lock)
    os.close(lock)


def is_locked(path: Path) -> bool:
    """Whether a process holds it; False if the file does not exist."""
    try:
        number = _open(path, create=False)
    except FileNotFoundError:
        return False
    try:
        # Shared: two that ask at the same time do not see each other.
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False


def holders(path: Path) -> list[int]:
    """The processes that have a lock's file open, as far as this user may see; none without /proc."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if descriptor.readlink() == path:
                found.append(int(descriptor.parts[2]))
    return sorted(set(found))


def _open(path: Path, *, create: bool) -> int:
    if path.is_dir():
        return os.open(path, os.O_RDONLY)
    return os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)


def _close_in_child() -> None:
    for number in _ours:
        with suppress(OSError):
            os.close(number)
    _ours.clear()


os.register_at_fork(after_in_child=_close_in_child)
