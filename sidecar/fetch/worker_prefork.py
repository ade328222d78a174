"""The processes that help with fetching: forked before there is anything to share but code, else begun anew.

A fork of a small program costs two milliseconds, and of memory what it writes to. A new interpreter takes
0.2 s of a core, just when all cores are wanted for fetching, and 30 MiB. But only a process with one thread
and no event loop may be forked: so programs that will fetch call `prefork` first.
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

from podferry.sidecar.fetch.worker_main import main

MAX_WORKERS = 2
"""Processes that help, at most. One begun anew holds 30 MiB, measured, for which the memory sum has room
beside agent and supervisor."""
CTRL_C = {signal.SIGINT}
MOMENT = 1.0
"""Seconds; only a helper that has failed waits so long."""
FIRST_FREE = 3
"""The first descriptor that is no standard one."""
_waiting: list[WorkerProcess] = []


class WorkerProcess(msgspec.Struct, frozen=True):
    """A process that waits for a task, or has one.

    Attributes:
        pid: Its number.
        ours: Our end of its socket; it ends when this is closed.
        anew: Itself, where it is a new interpreter.
    """

    pid: int
    ours: socket.socket
    anew: subprocess.Popen[bytes] | None = None

    async def end(self) -> None:
        """Make an end of it, whatever it does."""
        self.ours.close()
        await asyncio.to_thread(self._kill)

    def _kill(self) -> None:
        if self.anew is not None:
            self.anew.kill()
            self.anew.wait()
            return
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prefork() -> None:
    """Fork a helper for each core but one, where that is safe. To be called before the loop, and secrets."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return  # elsewhere the system's own libraries may have threads
    gc.freeze()  # the collector would write to what is shared
    agent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, CTRL_C)  # a child hears of none, not even at its birth
    try:
        while len(_waiting) < min(cores() - 1, MAX_WORKERS):
            _waiting.append(_forked(agent, before))
    except OSError:
        return  # no more processes can be had: helpers are a gain, no need
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _forked(agent: int, mask: Collection[int]) -> WorkerProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if not pid:
            _be_child(theirs, agent, mask)
        return WorkerProcess(pid, ours)


def _be_child(theirs: socket.socket, agent: int, mask: Collection[int]) -> None:
    """Wait for a task and carry it out; never returns. What the parent has buffered is not written again."""
    code = 1
    try:
        _close_all_but(theirs.fileno())  # else a port would stay bound, and nobody notice the parent's end
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if theirs.recv(1, socket.MSG_PEEK):
            uvloop.run(main(theirs, agent))
        code = 0
    except BaseException:  # noqa: BLE001 - nothing above may run twice
        if not _abandoned(agent):  # else it is only that nobody listens any more
            traceback.print_exc()
    finally:
        os._exit(code)


def _abandoned(agent: int) -> bool:
    """Whether the parent is gone: its sockets close a moment before that shows."""
    deadline = time.monotonic() + MOMENT
    while os.getppid() == agent and time.monotonic() < deadline:
        time.sleep(0.01)
    return os.getppid() != agent


def _close_all_but(kept: int) -> None:
    """Close every descriptor but the standard ones. Trying each number takes long where millions may be."""
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers, no paths
        if number >= FIRST_FREE and number != kept:
            with suppress(OSError):  # that of the listing itself
                os.close(number)


def acquire() -> WorkerProcess:
    """One that stands by; where none does, a new one."""
    return _waiting.pop() if _waiting else _begun_anew()


def _begun_anew() -> WorkerProcess:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        words = [sys.executable, "-m", "podferry.sidecar.fetch.worker_main", str(number)]
        process = subprocess.Popen(words, pass_fds=(number,), stdin=subprocess.DEVNULL)
    return WorkerProcess(process.pid, ours, process)


async def release_idle() -> None:
    """Let those go that are not needed any more."""
    while _waiting:
        await _waiting.pop().end()
