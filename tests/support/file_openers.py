"""Child processes that have a file open, as a trainer has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WRITES = "file = open(path, 'r+b')"
READS = "file = open(path, 'rb')"
MAPS = """
import mmap, os
descriptor = os.open(path, os.O_RDWR)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
address = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
os.close(descriptor)
"""
"""Maps it and closes the descriptor, as np.memmap does."""
PROGRAM = "import ctypes, os, sys\npath = sys.argv[1]\n{}\nprint('ready', flush=True)\nsys.stdin.read()"


@contextmanager
def opener(path: Path, how: str, user: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps the file open until the end of the block; `user` needs a caller that is root."""
    command = [sys.executable, "-c", PROGRAM.format(how), str(path)]
    # Only the pipes are needed, and another user may not read this directory.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", user=user
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()
