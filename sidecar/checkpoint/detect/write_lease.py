"""Whether a file is open for writing, by the answer to a read lease.

The kernel grants a read lease only while nobody has the file open for writing; a writable shared mapping
counts for as long as it lives, also after its descriptor was closed (np.memmap). A lease needs the user that
owns the file, or CAP_LEASE. Source: fcntl(2), "Leases"; the kernel's fs/locks.c, `check_conflicting_open`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
from pathlib import Path

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
LOCAL_FILE_SYSTEMS = frozenset(
    {
        0x0102_1994,  # tmpfs
        0x8584_58F6,  # ramfs
        0x0000_EF53,  # ext2, ext3, ext4
        0x5846_5342,  # xfs
        0x9123_683E,  # btrfs
        0x794C_7630,  # overlayfs
        0xF2F5_2010,  # f2fs
        0x2FC1_2FC1,  # zfs
    }
)
"""`f_type` of statfs(2). Elsewhere other machines may have the file open, and a lease may be refused for
reasons of the protocol: NFS refuses it without a delegation, with the error that means "open for writing"
here.
"""
STATFS_BYTES = 256
"""More than the kernel's struct has; its first member, a long, is `f_type`."""

# PyDLL keeps the interpreter's lock: nothing else may run between taking a lease and giving it back, because
# a program that opens the file for writing meanwhile waits for that. Each call takes about a microsecond.
_libc = ctypes.PyDLL(None, use_errno=True)


def is_open_for_writing(path: Path) -> bool:
    """Whether any process has a regular file open for writing; the caller's own descriptors count.

    The lease is given back at once. Should another process ask for the file in between, it waits until then.

    Raises:
        OSError: That cannot be known. EACCES: another user's file. EINVAL, EOPNOTSUPP: not on this file
            system.
    """
    descriptor = os.open(path, FLAGS)
    try:
        if not _is_local(descriptor):
            raise OSError(errno.EOPNOTSUPP, "not a local file system", str(path))
        # By default a broken lease sends SIGIO, which ends a process; SIGURG does nothing.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        if _libc.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK) == 0:
            _libc.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return False
        error = ctypes.get_errno()
        if error != errno.EAGAIN:
            raise OSError(error, os.strerror(error), str(path))
        return True
    finally:
        os.close(descriptor)


def _is_local(descriptor: int) -> bool:
    found = ctypes.create_string_buffer(STATFS_BYTES)
    if _libc.fstatfs(descriptor, found) != 0:
        return False
    return ctypes.c_long.from_buffer(found).value in LOCAL_FILE_SYSTEMS
