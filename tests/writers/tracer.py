"""Runs a program and stops it before every system call that changes a directory.

Records the directory at each stop: every state between two system calls, however short, of all threads and
children in any language. Sampling by inotify would miss most of them.

Linux only: seccomp(2) with SECCOMP_RET_USER_NOTIF. As a script, this module installs the filter in itself,
passes the listener to its parent and becomes the program.
"""

import contextlib
import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# By machine: number of the call, its name, the argument that is a descriptor, the one that is a path.
CALLS = {
    "x86_64": {
        1: ("write", 0, None),
        3: ("close", 0, None),
        18: ("pwrite64", 0, None),
        20: ("writev", 0, None),
        40: ("sendfile", 0, None),
        77: ("ftruncate", 0, None),
        82: ("rename", None, 1),
        83: ("mkdir", None, 0),
        84: ("rmdir", None, 0),
        86: ("link", None, 1),
        87: ("unlink", None, 0),
        88: ("symlink", None, 1),
        257: ("openat", None, 1),
        258: ("mkdirat", None, 1),
        263: ("unlinkat", None, 1),
        264: ("renameat", None, 3),
        265: ("linkat", None, 3),
        266: ("symlinkat", None, 2),
        285: ("fallocate", 0, None),
        296: ("pwritev", 0, None),
        316: ("renameat2", None, 3),
        326: ("copy_file_range", 2, None),
        328: ("pwritev2", 0, None),
    },
    "aarch64": {
        34: ("mkdirat", None, 1),
        35: ("unlinkat", None, 1),
        36: ("symlinkat", None, 2),
        37: ("linkat", None, 3),
        38: ("renameat", None, 3),
        46: ("ftruncate", 0, None),
        47: ("fallocate", 0, None),
        56: ("openat", None, 1),
        57: ("close", 0, None),
        64: ("write", 0, None),
        66: ("writev", 0, None),
        68: ("pwrite64", 0, None),
        70: ("pwritev", 0, None),
        71: ("sendfile", 0, None),
        276: ("renameat2", None, 3),
        285: ("copy_file_range", 2, None),
        287: ("pwritev2", 0, None),
    },
}
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER, NO_NEW_PRIVS = 1, 8, 38
RECEIVE, ANSWER = 0xC0502100, 0xC0182101
CONTINUE = 1
ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
THIRD_ARGUMENT = 16 + 8 * 2
CHANGING = os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class TracedFile:
    """A file at a moment: its version and its bytes; a symlink has a target instead."""

    inode: int
    mtime_ns: int
    data: bytes
    target: str | None = None


@dataclass(frozen=True)
class Moment:
    """The directory just before a system call.

    Attributes:
        call: The next call, as `name path`.
        files: By relative name.
        closed: Names closed after writing since the previous moment.
        saved: The checkpoint that the program announces here, or None.
    """

    call: str
    files: dict[str, TracedFile]
    closed: frozenset[str]
    saved: str | None


@dataclass
class Trace:
    """All moments of a run that differ from the previous one."""

    root: Path
    moments: list[Moment] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)

    def record(self, call: str, saved: str | None = None) -> None:
        """Record the current state, if it has changed."""
        files = read_tree(self.root)
        last = self.moments[-1] if self.moments else None
        if last is None or last.files != files or self.closed or saved:
            self.moments.append(Moment(call, files, frozenset(self.closed), saved))
            self.closed.clear()


def read_tree(root: Path) -> dict[str, TracedFile]:
    """All files and links below a directory."""
    found = {}
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for path in (Path(folder) / name for name in names + links):
            with contextlib.suppress(FileNotFoundError):  # another process is still running
                found[path.relative_to(root).as_posix()] = _read_file(path)
    return found


def _read_file(path: Path) -> TracedFile:
    """A consistent file: another process may write it meanwhile, but its times and bytes must match."""
    while True:
        stat = path.lstat()
        target = str(path.readlink()) if path.is_symlink() else None
        data = b"" if target is not None else path.read_bytes()
        after = path.lstat()
        if (stat.st_ino, stat.st_size, stat.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns):
            return TracedFile(stat.st_ino, stat.st_mtime_ns, data, target)


def trace(command: list[str], root: Path, done: Path, env: dict[str, str], seconds: float) -> Trace:
    """Run a program to its end; a new directory `N@NAME` in `done` announces a saved checkpoint.

    Raises:
        RuntimeError: The program failed, with its output.
        TimeoutError: It took longer than `seconds` between two calls.
    """
    ours, theirs = socket.socketpair()
    found = Trace(root.resolve())
    log = done.with_suffix(".log")
    with ours, log.open("wb") as output:
        child = subprocess.Popen(
            [command[0], "-S", "-E", __file__, str(theirs.fileno()), *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            env=env,
        )
        theirs.close()
        try:
            _follow(ours, found, str(done.resolve()), seconds)
            code = child.wait(seconds)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    if code:
        raise RuntimeError(f"{command} ended with {code}:\n{log.read_text(errors='replace')[-4000:]}")
    found.record("end")
    return found


def _follow(ours: socket.socket, found: Trace, done: str, seconds: float) -> None:
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    try:
        while True:
            ready = waiting.poll(seconds * 1000)
            if not ready:
                raise TimeoutError(f"no system call for {seconds} s")
            if not ready[0][1] & select.POLLIN:
                return  # no process is left
            _stop(listener, found, done)
    finally:
        os.close(listener)


def _stop(listener: int, found: Trace, done: str) -> None:
    notice = bytearray(80)
    try:
        fcntl.ioctl(listener, RECEIVE, notice)
    except FileNotFoundError:
        return  # the process was killed
    number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", notice)
    name, descriptor, path = CALLS[platform.machine()][call]
    try:
        if path is not None:
            target = _text(pid, arguments[path])
            if target.startswith(done):
                found.record("saved", target.rpartition("@")[2])
            else:
                found.record(f"{name} {target}")
        else:
            _record_descriptor_call(pid, arguments[descriptor], name, found)
    finally:
        with contextlib.suppress(FileNotFoundError):  # as above
            fcntl.ioctl(listener, ANSWER, struct.pack("=QqiI", number, 0, 0, CONTINUE))


def _record_descriptor_call(pid: int, descriptor: int, name: str, found: Trace) -> None:
    """Record a call on a descriptor that is open for writing below the root."""
    try:
        path = str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
        if not path.startswith(f"{found.root}/"):
            return
        flags = int(Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0], 8)
    except OSError:
        return
    if flags & os.O_ACCMODE == os.O_RDONLY:
        return
    relative = path.removeprefix(f"{found.root}/")
    found.record(f"{name} {relative}")
    if name == "close":
        found.closed.add(relative)


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
