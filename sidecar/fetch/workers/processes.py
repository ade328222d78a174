"""Worker processes: forked before there is anything but code to share, otherwise spawned.

Forking a small program takes two milliseconds, and only the memory that it writes to. A new interpreter takes
0.2 s of a core, just when all cores are needed for fetching, and 30 MiB. But only a process with one thread
and no event loop may fork: programs that will fetch call `prefork` first.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Collection
from contextlib import suppress

import msgspec
import uvloop

from podferry.sidecar.fetch.workers.main import main
from podferry.sidecar.runtime.cpu_limit import cores

MAX_WORKERS = 2
"""A spawned worker takes 30 MiB, measured, which the memory calculation includes next to agent and
supervisor."""
INTERRUPT = {signal.SIGINT}
ORPHAN_SECONDS = 1.0
"""How long a failed worker waits to see whether its parent has ended."""
FIRST_NONSTANDARD_FD = 3
_idle: list[WorkerProcess] = []


class WorkerProcess(msgspec.Struct, frozen=True):
    """A process that waits for its start message, or runs.

    Attributes:
        pid: Its process ID.
        connection: Our end of its socket; it ends when this is closed.
        spawned: The process, if it is a new interpreter.
    """

    pid: int
    connection: socket.socket
    spawned: subprocess.Popen[bytes] | None = None

    async def end(self) -> None:
        """Kill it."""
        self.connection.close()
        await asyncio.to_thread(self._kill)

    def _kill(self) -> None:
        if self.spawned is not None:
            self.spawned.kill()
            self.spawned.wait()
            return
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def prefork() -> None:
    """Fork a worker for each core but one, if that is safe. Call it before there is a loop, or secrets."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return  # elsewhere the system's own libraries may have threads
    gc.freeze()  # the collector would write to shared pages
    agent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)  # a worker must not see Ctrl-C, even at birth
    try:
        while len(_idle) < min(cores() - 1, MAX_WORKERS):
            _idle.append(_fork(agent, mask))
    except OSError:
        return  # no more processes: workers are optional
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _fork(agent: int, mask: Collection[int]) -> WorkerProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if not pid:
            _run_child(theirs, agent, mask)
        return WorkerProcess(pid, ours)


def _run_child(theirs: socket.socket, agent: int, mask: Collection[int]) -> None:
    """Run one worker and exit, without flushing what the parent has buffered."""
    code = 1
    try:
        _close_other_fds(theirs.fileno())  # otherwise ports stay bound, and nothing notices the parent's end
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if theirs.recv(1, socket.MSG_PEEK):
            uvloop.run(main(theirs, agent))
        code = 0
    except BaseException:  # noqa: BLE001 - the parent's code must not run here
        if not _is_orphan(agent):  # an orphan fails because its socket is closed
            traceback.print_exc()
    finally:
        os._exit(code)


def _is_orphan(agent: int) -> bool:
    """Whether the parent has ended: its sockets close a moment before that shows."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while os.getppid() == agent and time.monotonic() < deadline:
        time.sleep(0.01)
    return os.getppid() != agent


def _close_other_fds(kept: int) -> None:
    """Close all but the standard descriptors and `kept`. Trying each number is slow with a high limit."""
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers, not paths
        if number >= FIRST_NONSTANDARD_FD and number != kept:
            with suppress(OSError):  # the listing's own descriptor
                os.close(number)


def idle_count() -> int:
    """How many workers have started and wait."""
    return len(_idle)


def acquire() -> WorkerProcess:
    """An idle worker, or a new one."""
    return _idle.pop() if _idle else _spawn()


def _spawn() -> WorkerProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-m", "podferry.sidecar.fetch.workers.main", str(number)]
        process = subprocess.Popen(command, pass_fds=(number,), stdin=subprocess.DEVNULL)
    return WorkerProcess(process.pid, ours, process)


async def release_idle() -> None:
    """End the workers that are not needed any more."""
    while _idle:
        await _idle.pop().end()
