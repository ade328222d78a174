"""Stops programs before every system call that changes files, through seccomp(2) with SECCOMP_RET_USER_NOTIF.

Works for all threads and children in any language. As a script, this module installs the filter in itself,
passes the listener to its parent and becomes the program. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

NO_DIRECTORY = -1
# By machine: number of the call, its name, the argument that is a descriptor, and the arguments that are
# paths, each with the one that is their directory's descriptor.
CALLS: dict[str, dict[int, tuple[str, int | None, tuple[tuple[int, int], ...]]]] = {
    "x86_64": {
        1: ("write", 0, ()),
        3: ("close", 0, ()),
        18: ("pwrite64", 0, ()),
        20: ("writev", 0, ()),
        26: ("msync", None, ()),
        40: ("sendfile", 0, ()),
        74: ("fsync", 0, ()),
        75: ("fdatasync", 0, ()),
        76: ("truncate", None, ((NO_DIRECTORY, 0),)),
        77: ("ftruncate", 0, ()),
        82: ("rename", None, ((NO_DIRECTORY, 1), (NO_DIRECTORY, 0))),
        83: ("mkdir", None, ((NO_DIRECTORY, 0),)),
        84: ("rmdir", None, ((NO_DIRECTORY, 0),)),
        86: ("link", None, ((NO_DIRECTORY, 1),)),
        87: ("unlink", None, ((NO_DIRECTORY, 0),)),
        88: ("symlink", None, ((NO_DIRECTORY, 1),)),
        257: ("openat", None, ((0, 1),)),
        258: ("mkdirat", None, ((0, 1),)),
        263: ("unlinkat", None, ((0, 1),)),
        264: ("renameat", None, ((2, 3), (0, 1))),
        265: ("linkat", None, ((2, 3),)),
        266: ("symlinkat", None, ((1, 2),)),
        285: ("fallocate", 0, ()),
        296: ("pwritev", 0, ()),
        316: ("renameat2", None, ((2, 3), (0, 1))),
        326: ("copy_file_range", 2, ()),
        328: ("pwritev2", 0, ()),
    },
    "aarch64": {
        34: ("mkdirat", None, ((0, 1),)),
        35: ("unlinkat", None, ((0, 1),)),
        36: ("symlinkat", None, ((1, 2),)),
        37: ("linkat", None, ((2, 3),)),
        38: ("renameat", None, ((2, 3), (0, 1))),
        45: ("truncate", None, ((NO_DIRECTORY, 0),)),
        46: ("ftruncate", 0, ()),
        47: ("fallocate", 0, ()),
        56: ("openat", None, ((0, 1),)),
        57: ("close", 0, ()),
        64: ("write", 0, ()),
        66: ("writev", 0, ()),
        68: ("pwrite64", 0, ()),
        70: ("pwritev", 0, ()),
        71: ("sendfile", 0, ()),
        82: ("fsync", 0, ()),
        83: ("fdatasync", 0, ()),
        227: ("msync", None, ()),
        276: ("renameat2", None, ((2, 3), (0, 1))),
        285: ("copy_file_range", 2, ()),
        287: ("pwritev2", 0, ()),
    },
}
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER, NO_NEW_PRIVS = 1, 8, 38
RECEIVE, ANSWER, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
INTERRUPT_SECONDS = 0.2
"""A signal that goes to another thread leaves the call alone."""
CONTINUE = 1
ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
THIRD_ARGUMENT = 16 + 8 * 2
CHANGING = os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class Call:
    """A stopped system call.

    Attributes:
        number: Of its notification.
        pid: The stopped thread.
        name: The call's name.
        paths: The absolute paths that it changes; none for an unknown file.
    """

    number: int
    pid: int
    name: str
    paths: tuple[str, ...]


def receive(listener: int) -> Call | None:
    """The next stopped call; None if its process was killed meanwhile."""
    notice = bytearray(80)
    try:
        fcntl.ioctl(listener, RECEIVE, notice)
    except (FileNotFoundError, InterruptedError):
        return None
    number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", notice)
    name, descriptor, paths = CALLS[platform.machine()][call]
    try:
        if descriptor is not None:
            changed = _writable(pid, arguments[descriptor])
        else:
            changed = tuple(_path(pid, arguments[place], arguments[path]) for place, path in paths)
    except OSError:
        changed = ()
    return Call(number, pid, name, changed)


def answer(listener: int, call: Call, error: int = 0) -> None:
    """Let a stopped call happen, or fail with that errno."""
    with contextlib.suppress(FileNotFoundError):  # the process was killed, or a signal interrupted the call
        flags = 0 if error else CONTINUE
        fcntl.ioctl(listener, ANSWER, struct.pack("=QqiI", call.number, 0, -error, flags))


def interrupt(listener: int, call: Call) -> None:
    """Send SIGINT to a stopped call's process, and wait until it has interrupted the call."""
    status = Path(f"/proc/{call.pid}/status").read_text()
    os.kill(int(status.split("Tgid:")[1].split()[0]), signal.SIGINT)
    late = time.monotonic() + INTERRUPT_SECONDS
    with contextlib.suppress(FileNotFoundError):
        while time.monotonic() < late:
            fcntl.ioctl(listener, IS_VALID, struct.pack("=Q", call.number))
            time.sleep(0.001)


def _writable(pid: int, descriptor: int) -> tuple[str, ...]:
    """The file of a descriptor that is open for writing."""
    path = str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    if not path.startswith("/"):
        return ()
    flags = int(Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0], 8)
    return () if flags & os.O_ACCMODE == os.O_RDONLY else (path,)


def _path(pid: int, place: int, address: int) -> str:
    """A path argument, made absolute; `place` is the descriptor of its directory."""
    text = _text(pid, address)
    if text.startswith("/"):
        return os.path.normpath(text)
    descriptor = ctypes.c_int(place & 0xFFFFFFFF).value
    folder = Path(f"/proc/{pid}/fd/{descriptor}" if descriptor >= 0 else f"/proc/{pid}/cwd").readlink()
    return os.path.normpath(folder / text)


def _text(pid: int, address: int) -> str:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        data = b""
        while b"\0" not in data:
            data += memory.read(64 - (address + len(data)) % 64)  # never over the end of a page
    return os.fsdecode(data.partition(b"\0")[0])


def _filter() -> bytes:
    """Notify of the calls in the table, of opens only if they create or truncate a file; allow all others."""
    steps = [struct.pack("=HBBI", LOAD, 0, 0, 0)]
    for number, (name, _, _) in CALLS[platform.machine()].items():
        if name == "openat":
            steps += [
                struct.pack("=HBBI", EQUAL, 0, 4, number),
                struct.pack("=HBBI", LOAD, 0, 0, THIRD_ARGUMENT),
                struct.pack("=HBBI", ANY_BIT, 0, 1, CHANGING),
                struct.pack("=HBBI", RETURN, 0, 0, NOTIFY),
                struct.pack("=HBBI", RETURN, 0, 0, ALLOW),
            ]
        else:
            steps += [
                struct.pack("=HBBI", EQUAL, 0, 1, number),
                struct.pack("=HBBI", RETURN, 0, 0, NOTIFY),
            ]
    return b"".join([*steps, struct.pack("=HBBI", RETURN, 0, 0, ALLOW)])


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _become(channel: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(_filter(), len(_filter()))
    program = _Program(len(_filter()) // 8, ctypes.cast(steps, ctypes.c_void_p))
    ours = socket.socket(fileno=channel)
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = libc.syscall(SECCOMP[platform.machine()], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    socket.send_fds(ours, [b"l"], [listener])
    os.set_inheritable(listener, False)
    os.set_inheritable(channel, False)
    os.execv(command[0], command)  # noqa: S606 - it becomes the program


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
