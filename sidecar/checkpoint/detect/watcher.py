"""When to scan the checkpoint directory again, and what was closed in it.

Two implementations of one interface: inotify, and polling if inotify or its instances are not available.
Neither decides anything: scans look at the files themselves
(`podferry.sidecar.checkpoint.detect.change_tracker`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import structlog

from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.config.tuning import CheckpointSettings

log = structlog.get_logger(__name__)


async def _wait_and_clear(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most `seconds`, and clear it."""
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
        """End the current or the next `wait` at once."""

    def close(self) -> None:
        """End the watch."""


class InotifyWatch:
    """Hints by inotify; a wait lasts at most the interval between full scans."""

    def __init__(self, root: Path, settings: CheckpointSettings) -> None:
        self._inotify = Inotify(root)
        self._max_seconds = settings.rescan_seconds
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._inotify.fd, self._on_readable)

    def _on_readable(self) -> None:
        # The descriptor stays readable until `wait` reads it: a registered reader would spin the loop.
        self._loop.remove_reader(self._inotify.fd)
        self._ready.set()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        await _wait_and_clear(self._ready, min(seconds, self._max_seconds))
        closed, lost = self._inotify.read()
        if lost:
            log.warning("inotify lost events or watches: scanning everything")
        if lost or not self._inotify.watches_root:
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
    """No hints, only intervals between scans."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self._max_seconds = settings.poll_seconds
        self._woken = asyncio.Event()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        await _wait_and_clear(self._woken, min(seconds, self._max_seconds))
        return set()

    def wake(self) -> None:
        """See `Watch.wake`."""
        self._woken.set()

    def close(self) -> None:
        """See `Watch.close`."""


def open_watch(root: Path, settings: CheckpointSettings, *, polling: bool) -> Watch:
    """An inotify watch, or a polling one if requested or, with a warning, if inotify is not available."""
    if polling:
        return PollingWatch(settings)
    try:
        return InotifyWatch(root, settings)
    except OSError as error:
        log.warning("no inotify: polling instead", reason=str(error), every_seconds=settings.poll_seconds)
        return PollingWatch(settings)
