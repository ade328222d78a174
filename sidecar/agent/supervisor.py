"""Keeps the worker alive, as PID 1 of the sidecar or as the parent of an embedded agent.

A crash of the worker must not restart the container: under `restartPolicy: OnFailure` a sidecar's exit
fails the Job of a healthy trainer. The listening socket is the supervisor's, so the agent's address outlives
the worker. One that dies while it drains is started again too, to go on draining. Exits 0 once told to end: a
failed sidecar would be blamed for a failed pod.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

USAGE = 2
"""Exit code of wrong arguments: starting again cannot mend them."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds before the worker is started again; doubled each time, back to the shortest once it has lived."""
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
"""For the worker, unless the environment says otherwise. Left to itself, glibc keeps freed transfer buffers
for later ones, in an arena for each thread: 253 MiB were seen to stay after a prefetch, 37 with this.
Source: mallopt(3), M_MMAP_THRESHOLD.
"""
HEALTHY = 60.0
"""Seconds that a worker must have lived to count as healthy."""
ENDING = "--ending"
"""Tells a worker that is started again while its pod ends to drain at once."""
MAX_DRAIN_RESTARTS = 5
"""Workers that may begin to drain: one that always dies must not keep a run from ending."""


class Supervisor:
    """One worker at a time, until told to end."""

    def __init__(self, command: Sequence[str], listener: socket.socket, *, until_stdin_closes: bool) -> None:
        self._command = [*command, "--listen-fd", str(listener.fileno())]
        self._listener = listener
        self._ending = False
        self._drains = 0
        self._worker: subprocess.Popen[bytes] | None = None
        self._wakeup_read, self._wakeup_write = os.pipe()
        os.set_blocking(self._wakeup_write, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup_read, selectors.EVENT_READ)
        if until_stdin_closes:
            self._selector.register(0, selectors.EVENT_READ)

    def run(self) -> int:
        """Supervise; the exit code."""
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        pause = SHORTEST_PAUSE
        while True:
            started = time.monotonic()
            self._start()
            code = self._live()
            if code == USAGE or self._drained(code):
                return USAGE if code == USAGE else 0
            if time.monotonic() - started > HEALTHY or self._ending:
                pause = SHORTEST_PAUSE
            self._rest(code, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _drained(self, code: int) -> bool:
        """Whether all is done that could be, after a worker has ended with a code."""
        self._drains += self._ending
        return self._ending and (code == 0 or self._drains >= MAX_DRAIN_RESTARTS)

    def _start(self) -> None:
        # A session of its own: a terminal's Ctrl-C reaches the worker through the supervisor alone.
        # A pipe that nobody else holds: a worker whose supervisor is killed drains and ends.
        self._worker = subprocess.Popen(
            [*self._command, *([ENDING] if self._ending else [])],
            stdin=subprocess.PIPE,
            pass_fds=[self._listener.fileno()],
            env={**ALLOCATOR, **os.environ},
            start_new_session=True,
        )

    def _live(self) -> int:
        """Wait until the worker ends; pass the end on to it when it comes."""
        assert self._worker is not None  # noqa: S101 - `_start` has just made it
        while (code := self._worker.poll()) is None:
            if self._told_to_end(None) and not self._ending:
                self._ending = True
                self._worker.send_signal(signal.SIGTERM)
        if self._worker.stdin is not None:
            self._worker.stdin.close()
        self._reap()
        return code

    def _told_to_end(self, timeout: float | None) -> bool:
        """Wait for a signal or the end of standard input; whether one of them says: end."""
        told = False
        for key, _ in self._selector.select(timeout):
            data = os.read(key.fd, 4096)
            if key.fd == self._wakeup_read:
                told |= bool({signal.SIGTERM, signal.SIGINT} & set(data))
            elif not data:
                self._selector.unregister(key.fd)
                told = True
        return told

    def _rest(self, code: int, pause: float) -> None:
        """Pause before the next start; being told to end cuts it short."""
        sys.stderr.write(f"podferry: the worker ended with {code}; starting it again in {pause:.1f} s\n")
        if self._ending:
            time.sleep(pause)
        deadline = time.monotonic() + pause
        while not self._ending and (left := deadline - time.monotonic()) > 0:
            self._ending = self._told_to_end(left)
        self._reap()  # what the worker has left behind has ended meanwhile

    @staticmethod
    def _reap() -> None:
        """Collect orphans that PID 1 inherits."""
        if os.getpid() != 1:
            return
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return


def supervise(arguments: Sequence[str], listener: socket.socket, *, until_stdin_closes: bool) -> int:
    """Run `podferry agent --worker ARGUMENTS…` until told to end; the exit code."""
    command = [sys.executable, "-m", "podferry.cli.main", "agent", "--worker", *arguments]
    return Supervisor(command, listener, until_stdin_closes=until_stdin_closes).run()
