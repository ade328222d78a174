"""When an agent drains: in a pod at once when asked, in a local run when nothing writes any more."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

from podferry.sidecar.config.run_directory import RunDirectory

LOOK_SECONDS = 0.5
"""Between two looks at who lives, in a local run."""
ORPHAN_SECONDS = 0.5
"""Before an orphan concludes that its command lives: both may have been killed, one after the other."""


class EndRequest:
    """Waits for the end: SIGTERM, SIGINT, or the end of `parent`, a pipe to the supervisor.

    In a local run these are only reasons to look: a signal may reach every process of a session while the
    trainer saves its last checkpoint.

    Args:
        run: The local run; None in a pod.
        parent: The pipe.
    """

    def __init__(self, run: RunDirectory | None, parent: int) -> None:
        self._run, self._parent = run, parent
        self._asked = asyncio.Event()
        self._orphaned_at: float | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked.set)
        loop.add_reader(parent, self._on_readable)

    def set(self) -> None:
        """The end has come."""
        self._asked.set()

    async def wait(self) -> bool:
        """Wait for the end.

        Returns:
            Whether to drain. Otherwise the supervisor is gone, and this worker gives way to that of another
            supervisor, which the command starts.
        """
        if self._run is None:
            return await self._asked.wait()
        while not self._run.is_over():
            if self._is_orphan() and self._run.command_lives():
                return False
            self._asked.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
        return True

    def _is_orphan(self) -> bool:
        return self._orphaned_at is not None and time.monotonic() - self._orphaned_at >= ORPHAN_SECONDS

    def _on_readable(self) -> None:
        if not os.read(self._parent, 1):
            asyncio.get_running_loop().remove_reader(self._parent)
            self._orphaned_at = time.monotonic()
            self._asked.set()
