"""Progress bars on standard error, only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podferry.contract.status import Status

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REFRESH_SECONDS = 0.2
"""Between two updates of the bars."""
POLL_SECONDS = 10.0
"""Between two checks without a terminal: a response that ends the wait comes at once all the same."""
PHASE_ROW = "/"
"""Key of the row that shows the agent's phase: no dataset has this name."""


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for bytes done and their total; the bar disappears at the end."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with _progress() as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def prefetch_bars() -> Iterator[PrefetchBars]:
    """Show the prefetch, one bar per dataset; the bars disappear at the end."""
    if not sys.stderr.isatty():
        yield PrefetchBars()
        return
    with _progress() as progress:
        yield TerminalBars(progress)


class PrefetchBars:
    """Shows nothing: there is no terminal.

    Attributes:
        poll_seconds: How often to call `show`.
    """

    poll_seconds = POLL_SECONDS

    def show(self, status: Status) -> None:
        """Update the bars."""


class TerminalBars(PrefetchBars):
    """Shows the phase until datasets are listed, then their progress."""

    poll_seconds = REFRESH_SECONDS

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, status: Status) -> None:
        """Update the bars."""
        listed = [one for one in status.datasets if one.files]
        self._progress.update(self._task(PHASE_ROW), description=status.stage.value, visible=not listed)
        for one in listed:
            files = f"{one.files_done:,} of {one.files:,} files"
            self._progress.update(
                self._task(one.name),
                description=f"{one.name}: {files}" if one.name else files,
                total=one.bytes,
                completed=one.bytes_done,
            )

    def _task(self, name: str) -> TaskID:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task("", total=None)
        return self._tasks[name]


def _progress() -> Progress:
    # Imported here: only a terminal needs it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
