"""A process on a terminal of its own, to which a test types."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.support.patience import PATIENCE


class Terminal:
    """A process whose standard streams are a terminal that it controls.

    Args:
        command: Its words.
        settings: For `subprocess.Popen`.
    """

    def __init__(self, command: Sequence[str], **settings: Any) -> None:
        self._ours, theirs = pty.openpty()
        self.text = ""

        def control() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=control,  # noqa: PLW1509 - tests have no other thread
            **settings,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.process.kill()
        self.process.wait()

    def press(self, keys: str) -> None:
        """Type; `\\x03` is Ctrl-C."""
        os.write(self._ours, keys.encode())

    def read_until(self, text: str) -> None:
        """Read until a text has appeared."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} does not appear in {self.text!r}"
            assert self._read(0.1), f"{text!r} does not appear in {self.text!r}"

    def wait(self) -> int:
        """Read until the process has ended; its return code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self._read(0.1)
        while self._read(0.0):
            pass
        return self.process.returncode

    def close(self) -> None:
        """Close the terminal, as a window: its processes get SIGHUP, and what they write is lost."""
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1

    def _read(self, seconds: float) -> bool:
        """Read what is there; False at the end, or if nothing came."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return seconds > 0
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # EIO: the process has closed it
            return False
        self.text += data.decode(errors="replace").replace("\r\n", "\n")
        return True
