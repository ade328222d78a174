"""Signals of `podferry run`: what they do depends on the phase.

    before training      the first ends the run
    during training      they reach the trainer; a repeated Ctrl-C terminates it, then kills it
    the wait at the end  the first ends the wait, the second what podferry does after it

Only while `interruptible` runs does a handler raise, and then once: nothing else can be torn apart.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from podferry.sidecar.runtime.messages import message_line

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
USER = (signal.SIGUSR1, signal.SIGUSR2)
BOUNCE_SECONDS = 0.5
"""The same signal again within this time is the same request: wrappers such as `uv run` pass on what the
terminal has sent already, and keys bounce."""
NOTICE_SECONDS = 1.5
"""After Ctrl-C, before a trainer that still runs is reported."""


class Interrupted(Exception):
    """A signal has ended what was `interruptible`."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """As that of shells."""
        return 128 + self.number


class RunSignals:
    """Handles the signals of this process from now on, but those that it was started to ignore (nohup).

    Attributes:
        ended_trainer: A signal that asks for the end came while the trainer ran.
    """

    def __init__(self) -> None:
        self.handled = [one for one in (*ENDING, *USER) if signal.getsignal(one) is not signal.SIG_IGN]
        self._had_terminal = _foreground_group() is not None
        self._armed = False
        self._pending: list[int] = []
        self._trainer: subprocess.Popen[bytes] | None = None
        self._interrupts = 0
        self.ended_trainer = False
        self._last: tuple[int, float] = (0, 0.0)
        for number in self.handled:
            signal.signal(number, self._on_signal)

    def interruptible(self, call: Callable[[], T]) -> T:
        """Call; raises `Interrupted` at a signal, also at one since the last phase."""
        try:
            self._armed = True
            self._raise_pending()
            result = call()
            self._armed = False
        finally:
            self._armed = False
        return result

    @contextmanager
    def blocked(self) -> Iterator[Callable[[], None]]:
        """Hold signals back while a child is forked; yields what the child calls before it executes."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.handled)

        def in_child() -> None:
            for number in self.handled:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        try:
            yield in_child
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def wait_for(self, trainer: subprocess.Popen[bytes]) -> int:
        """Wait for the trainer, which gets the signals; its return code."""
        self._trainer = trainer
        for number in self._pending:
            self._pass_on(number)
        self._pending.clear()
        try:
            return trainer.wait()
        finally:
            self._trainer = None

    def _on_signal(self, number: int, _: object) -> None:
        now, (last, at) = time.monotonic(), self._last
        self._last = number, now
        if number == last and now - at < BOUNCE_SECONDS and number in ENDING:
            return
        if self._trainer is not None:
            self._pass_on(number)
        elif number in ENDING:
            self._pending.append(number)
            if self._armed:
                self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending:
            self._armed = False
            raise Interrupted(self._pending.pop())

    def _pass_on(self, number: int) -> None:
        trainer = self._trainer
        if trainer is None:
            return
        self.ended_trainer |= number in ENDING
        if number != signal.SIGINT:
            if number != signal.SIGHUP or not self._hung_up():
                trainer.send_signal(number)
            return
        self._interrupts += 1
        if self._interrupts == 1:
            if _foreground_group() != os.getpgrp():  # otherwise the terminal has sent it, too
                trainer.send_signal(number)
            notice = threading.Timer(NOTICE_SECONDS, self._report_running, [trainer])
            notice.daemon = True
            notice.start()
        elif self._interrupts == 2:
            _write(f"SIGTERM to process {trainer.pid}. Ctrl-C again kills it.")
            trainer.terminate()
        else:
            _write(f"SIGKILL to process {trainer.pid}.")
            trainer.kill()

    def _hung_up(self) -> bool:
        """Whether the terminal was closed, and the shell has sent the trainer its SIGHUP as well.

        Of a session without a shell only the leader gets one from the kernel, which is this process then.
        """
        closed = self._had_terminal and _foreground_group() is None
        return closed and os.getsid(0) != os.getpid()

    def _report_running(self, trainer: subprocess.Popen[bytes]) -> None:
        if self._trainer is trainer and self._interrupts == 1:
            _write(f"process {trainer.pid} has not ended after Ctrl-C. Ctrl-C again sends SIGTERM.")


def _foreground_group() -> int | None:
    """The process group that gets Ctrl-C from this process's terminal; None without a terminal."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal)
        finally:
            os.close(terminal)
    return None


def _write(text: str) -> None:
    """Write a line from a handler: the buffered stream may be in use."""
    with suppress(OSError):
        os.write(2, message_line(f"podferry: {text}", "yellow").encode())
