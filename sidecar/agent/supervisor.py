"""Keeps the worker alive, as PID 1 of the sidecar or as the parent of an embedded agent.

A crash of the worker must not restart the container: under `restartPolicy: OnFailure` a sidecar's exit fails
the Job of a healthy trainer. The supervisor owns the listening socket, so the agent's address survives the
worker. A worker that dies during the drain is restarted too, and continues to drain. After SIGTERM the
supervisor exits with 0: a failed sidecar would be blamed for a failed pod.

In a local run the worker decides when it drains, see `podferry.sidecar.agent.end_request`: the supervisor
passes signals on, and exits when the worker has.
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
from typing import TYPE_CHECKING

from podferry.contract.exit_codes import EXIT_USAGE
from podferry.sidecar.runtime.messages import print_message

if TYPE_CHECKING:
    from podferry.sidecar.config.run_directory import RunDirectory

MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 10.0
"""Before a restart; doubled each time, reset after a worker that was healthy."""
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
"""The worker's environment, unless it is set already. By default, glibc keeps freed transfer buffers for
reuse, in an arena for each thread: 253 MiB stayed after a prefetch, 37 with this.
Source: mallopt(3), M_MMAP_THRESHOLD.
"""
HEALTHY_SECONDS = 60.0
"""A worker that lived this long was healthy."""
ENDING_FLAG = "--ending"
"""Makes a worker that is restarted during the pod's end drain at once."""
MAX_DRAIN_RESTARTS = 5
"""Workers that may begin to drain: one that always dies must not keep a run from ending."""


class Supervisor:
    """Runs one worker at a time, until a signal, or the end of the local run `run`."""

    def __init__(
        self, command: Sequence[str], listener: socket.socket, run: RunDirectory | None = None
    ) -> None:
        self._command = [*command, "--listen-fd", str(listener.fileno())]
        self._listener, self._run = listener, run
        self._ending = False
        self._drains = 0
        self._wakeup_read, self._wakeup_write = os.pipe()
        os.set_blocking(self._wakeup_write, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup_read, selectors.EVENT_READ)

    def run(self) -> int:
        """Supervise; the exit code."""
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        pause = MIN_PAUSE_SECONDS
        while True:
            started_at = time.monotonic()
            code = self._run_worker()
            if code == EXIT_USAGE or (self._run is not None and code == 0):
                return code
            self._ending = self._ending or (self._run is not None and self._run.is_over())
            self._drains += self._ending
            if self._ending and (code == 0 or self._drains >= MAX_DRAIN_RESTARTS):
                return 0
            if time.monotonic() - started_at > HEALTHY_SECONDS or self._ending:
                pause = MIN_PAUSE_SECONDS
            self._pause(code, pause)
            pause = min(pause * 2, MAX_PAUSE_SECONDS)

    def _run_worker(self) -> int:
        """Run one worker; pass the end on to it. Its exit code."""
        # In its own session, so that a terminal's Ctrl-C reaches the worker only through the supervisor.
        # Only the supervisor holds the other end of the pipe: if it is killed, the worker drains and exits.
        worker = subprocess.Popen(
            [*self._command, *([ENDING_FLAG] if self._ending else [])],
            stdin=subprocess.PIPE,
            pass_fds=[self._listener.fileno()],
            env={**ALLOCATOR, **os.environ},
            start_new_session=True,
        )
        while (code := worker.poll()) is None:
            if self._end_requested(None) and not self._ending:
                self._ending = self._run is None
                worker.send_signal(signal.SIGTERM)
        if worker.stdin is not None:
            worker.stdin.close()
        self._reap()
        return code

    def _end_requested(self, timeout: float | None) -> bool:
        """Wait for a signal; whether it asks for the end."""
        if not self._selector.select(timeout):
            return False
        return bool({signal.SIGTERM, signal.SIGINT} & set(os.read(self._wakeup_read, 4096)))

    def _pause(self, code: int, seconds: float) -> None:
        """Pause before a restart; a request to end cuts it short."""
        if not (self._ending and code == -signal.SIGTERM):  # it had only just begun, and the next one drains
            text = f"podferry: the worker exited with {code}; restarting it in {seconds:.1f} s"
            print_message(text, "yellow")
        if self._ending:
            time.sleep(seconds)
        deadline = time.monotonic() + seconds
        while not self._ending and (left := deadline - time.monotonic()) > 0:
            self._ending = self._end_requested(left) and self._run is None
        self._reap()  # by now, the worker's own children have exited

    @staticmethod
    def _reap() -> None:
        """Collect orphans that PID 1 has inherited."""
        if os.getpid() != 1:
            return
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return


def supervise(arguments: Sequence[str], listener: socket.socket, run: RunDirectory | None = None) -> int:
    """Run `podferry agent --worker ARGUMENTS…` until a signal or the end of a local run; the exit code."""
    command = [sys.executable, "-m", "podferry.cli.entry_point", "agent", "--worker", *arguments]
    return Supervisor(command, listener, run).run()
