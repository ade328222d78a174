"""When to scan the checkpoint directory again, and what was closed in it.

A watch only gives hints: scans look at the files themselves (`change_tracker.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path

import structlog

from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.config.tuning import CheckpointSettings

log = structlog.get_logger(__name__)

AWAY_SECONDS = 0.5
"""Between two looks for the directory, while a trainer has removed it."""


class Watch:
    """Polls: waits between scans, without hints.

    Attributes:
        moved: Files and directories that were moved in before the last `wait` ended.
        begun: Files that were changed after their last close, and not before, among those of `expect_change`.
        created: Directories that were created in place before it ended, and not moved in since.
    """

    def __init__(self, max_seconds: float) -> None:
        self.moved: frozenset[Path] = frozenset()
        self.begun: frozenset[Path] = frozenset()
        self.created: frozenset[Path] = frozenset()
        self._max_seconds, self._woken = max_seconds, asyncio.Event()

    async def wait(self, seconds: float) -> set[Path]:
        """Files closed since the last call; returns at a hint, or after `seconds` or the scan interval."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, self._max_seconds)):
                await self._woken.wait()
        self._woken.clear()
        return set()

    def expect_change(self, paths: Iterable[Path]) -> None:
        """End a `wait` as soon as one of these files changes, once for each."""

    def describe(self) -> str:
        """Whether closes are reported, for people."""
        return "no reports of closes: polling"

    def wake(self) -> None:
        """End the current or the next `wait` at once."""
        self._woken.set()

    def close(self) -> None:
        """Release the watch's resources."""


class InotifyWatch(Watch):
    """Also ends a wait when inotify reports something."""

    def __init__(self, root: Path, max_seconds: float) -> None:
        super().__init__(max_seconds)
        self._inotify, self._reported = Inotify(root), False
        self._loop = asyncio.get_running_loop()
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._inotify.fd, self._on_readable)

    def _on_readable(self) -> None:
        # The descriptor stays readable until `wait` reads it: a registered reader would spin the loop.
        self._loop.remove_reader(self._inotify.fd)
        self.wake()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        await super().wait(seconds if self._inotify.watches_root else min(seconds, AWAY_SECONDS))
        closed, lost = self._inotify.read()
        self.moved, self.created = frozenset(self._inotify.moved), frozenset(self._inotify.created)
        self._inotify.moved.clear()
        self.begun = frozenset(self._inotify.begun)
        self._inotify.created.clear()
        if lost:
            log.warning("inotify lost events or watches: scanning everything")
        if lost or not self._inotify.watches_root:
            self._inotify.refresh()
        self._listen()
        self._reported |= bool(closed)
        return closed

    def expect_change(self, paths: Iterable[Path]) -> None:
        """See `Watch.expect_change`."""
        for path in paths:
            self._inotify.watch_file(path)

    def describe(self) -> str:
        """See `Watch.describe`."""
        return "inotify reports closes" if self._reported else "inotify has not reported a close yet"

    def close(self) -> None:
        """See `Watch.close`."""
        self._loop.remove_reader(self._inotify.fd)
        self._inotify.close()


def open_watch(root: Path, settings: CheckpointSettings, *, polling: bool) -> Watch:
    """An inotify watch; a polling one if requested, or, with a warning, if inotify is not available."""
    if not polling:
        try:
            return InotifyWatch(root, settings.rescan_seconds)
        except OSError as error:
            log.warning("no inotify: polling instead", reason=str(error), every_seconds=settings.poll_seconds)
    return Watch(settings.poll_seconds)
