"""Runs a program many times, stopped at every system call that changes its directory, with faults."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import seccomp

HERE = Path(__file__).parent
CALL_TIMEOUT_SECONDS = 240.0
"""Until a program's next system call: imports, on a busy machine."""
HUNG_SECONDS = 5.0
"""After a fault: what does not go on is killed."""


class Fault(Enum):
    """What happens to a stopped call instead of the call itself."""

    ENOSPC = "ENOSPC"
    EIO = "EIO"
    INTERRUPT = "KeyboardInterrupt"
    KILL = "SIGKILL"


ERRNO = {Fault.ENOSPC: 28, Fault.EIO: 5}


@dataclass(frozen=True)
class Stop:
    """A program, stopped before a system call.

    Attributes:
        call: As `name path`, the path relative to the directory.
        pid: The stopped thread.
        saved: The checkpoint that the program announces here, or None.
        number: How many the program tried to save before it.
        ended: How the program ended, `ok` or an exception's name; or None.
        pause: For how many seconds the program would change nothing; or None.
    """

    call: str
    pid: int
    saved: str | None = None
    number: int = 0
    ended: str | None = None
    pause: float | None = None

    @property
    def changes(self) -> bool:
        """Whether the call itself changes the directory."""
        return self.saved is None and self.ended is None and self.pause is None


OnStop = Callable[[Stop], Fault | None]


@dataclass(frozen=True)
class Place:
    """The directories of one run."""

    root: Path
    done: Path
    log: Path

    @classmethod
    def below(cls, folder: Path) -> Place:
        """New directories."""
        place = cls(folder.resolve() / "root", folder.resolve() / "done", folder.resolve() / "log")
        place.root.mkdir(parents=True)
        place.done.mkdir()
        return place


class Server:
    """Runs a program repeatedly; its imports happen once.

    Args:
        python: The interpreter that has the libraries.
        program: The script.
        env: The environment.
    """

    def __init__(self, python: str, program: Path, env: dict[str, str], log: Path) -> None:
        ours, theirs = socket.socketpair()
        command = [python, "-P", str(HERE / "fork_server.py"), str(program)]
        self._log = log
        with ours, theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                [python, "-S", "-E", seccomp.__file__, str(theirs.fileno()), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                pass_fds=[theirs.fileno()],
                env=env,
                bufsize=0,
            )
            theirs.close()
            _, (self._listener,), _, _ = socket.recv_fds(ours, 1, 1)
        self._text = b""
        self._follow(None, lambda _: None, CALL_TIMEOUT_SECONDS)

    def close(self) -> None:
        """End it. A program that is stopped goes on, and fails, once nobody listens."""
        self._process.kill()
        os.close(self._listener)
        self._process.communicate()

    def run(self, place: Place, on_stop: OnStop, seconds: float = CALL_TIMEOUT_SECONDS) -> int:
        """Run the program once; the exit status, negative for a signal.

        Args:
            place: Where.
            on_stop: Called at every stop; every thread that would change the directory stops or waits.
            seconds: What stops nowhere for so long is killed.
        """
        assert self._process.stdin
        self._process.stdin.write(f"{place.root}\t{place.done}\t{place.log}\n".encode())
        pid = int(self._follow(None, lambda _: None, CALL_TIMEOUT_SECONDS))
        try:
            return int(self._follow(place, on_stop, seconds, pid))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _follow(self, place: Place | None, on_stop: OnStop, seconds: float, group: int = 0) -> bytes:
        """Answer calls until the server prints a line."""
        assert self._process.stdout
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.register(self._process.stdout, select.POLLIN)
        while b"\n" not in self._text:
            ready = dict(waiting.poll(seconds * 1000))
            if not ready and not group:
                raise TimeoutError(f"no system call for {seconds} s:\n{self._log.read_text()[-4000:]}")
            if not ready:
                os.killpg(group, signal.SIGKILL)
            if self._listener in ready:
                self._stop(place, on_stop, group)
            elif ready:
                data = os.read(self._process.stdout.fileno(), 4096)
                if not data:
                    raise RuntimeError(f"the server ended:\n{self._log.read_text()[-4000:]}")
                self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line

    def _stop(self, place: Place | None, on_stop: OnStop, group: int) -> None:
        call = seccomp.receive(self._listener)
        if call is None:
            return
        error = 0
        stop = _stop_of(call, place) if place else None
        try:
            fault = on_stop(stop) if stop else None
            if fault is Fault.KILL:
                os.killpg(group, signal.SIGKILL)
            elif fault is Fault.INTERRUPT:
                seccomp.interrupt(self._listener, call)
            elif fault:
                error = ERRNO[fault]
        finally:
            seccomp.answer(self._listener, call, error)


def _stop_of(call: seccomp.Call, place: Place) -> Stop | None:
    for path in call.paths:
        if path.startswith(f"{place.done}/"):
            kind, _, name = path.rpartition("/")[2].partition("@")
            if kind == "end":
                return Stop("end", call.pid, ended=name)
            if kind.startswith("pause"):
                return Stop("pause", call.pid, pause=float(name))
            return Stop("saved", call.pid, saved=name, number=int(kind))
        if path == str(place.root) or path.startswith(f"{place.root}/"):
            return Stop(f"{call.name} {path.removeprefix(str(place.root)).lstrip('/')}", call.pid)
    return Stop("msync", call.pid) if call.name == "msync" else None
