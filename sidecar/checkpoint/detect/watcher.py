"""When to look at the checkpoint directory again, and what was closed there.

Two full modes with one interface: inotify, and polling where there is none or its instances have run out.
Neither decides anything: `podferry.sidecar.checkpoint.detect.change_tracker` looks at the files themselves.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import structlog

from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.config.tuning import CheckpointSettings

log = structlog.get_logger(__name__)


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so long, and clear it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
    event.clear()


class Watch(Protocol):
    """Hints about a directory."""

    async def wait(self, seconds: float) -> set[Path]:
        """Files closed since the last call; returns at the first hint, at the latest after `seconds`."""

    def wake(self) -> None:
        """End the present or the next `wait` at once."""

    def close(self) -> None:
        """End the watch."""


class InotifyWatch:
    """Hints by inotify; `seconds` are cut to the interval of full scans."""

    def __init__(self, root: Path, settings: CheckpointSettings) -> None:
        self._inotify = Inotify(root)
        self._rescan = settings.rescan_seconds
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._inotify.fd, self._readable)

    def _readable(self) -> None:
        # The descriptor stays readable until `wait` reads it: listening on would spin the loop meanwhile.
        self._loop.remove_reader(self._inotify.fd)
        self._ready.set()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        await _set_within(self._ready, min(seconds, self._rescan))
        closed, lost = self._inotify.read()
        if lost:
            log.warning("inotify lost events or watches: scanning everything")
        if lost or not self._inotify.rooted:
            self._inotify.refresh()
        self._listen()
        return closed

    def wake(self) -> None:
        """See `Watch.wake`."""
        self._ready.set()

    def close(self) -> None:
        """See `Watch.close`."""
        self._loop.remove_reader(self._inotify.fd)
        self._inotify.close()


class PollingWatch:
    """No hints: the time for the next scan."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self._interval = settings.poll_seconds
        self._woken = asyncio.Event()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        await _set_within(self._woken, min(seconds, self._interval))
        return set()

    def wake(self) -> None:
        """See `Watch.wake`."""
        self._woken.set()

    def close(self) -> None:
        """See `Watch.close`."""


def open_watch(root: Path, settings: CheckpointSettings, *, polling: bool) -> Watch:
    """The best watch that is to be had; it says so where that is polling although inotify was wanted."""
    if polling:
        return PollingWatch(settings)
    try:
        return InotifyWatch(root, settings)
    except OSError as error:
        log.warning("no inotify: polling instead", reason=str(error), every_seconds=settings.poll_seconds)
        return PollingWatch(settings)
