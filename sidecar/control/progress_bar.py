"""Bars for what takes long, on a terminal; elsewhere nothing. Everything goes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podferry.contract.status import Status

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REFRESH = 0.2
"""Seconds between two looks at the progress where it is shown."""
SELDOM = 10.0
"""Seconds between two looks where it is not: the answer comes all the same when there is one."""
STAGE = "/"
"""Stands for the row of the agent's stage: no dataset is called so."""


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many bytes of how many are done; it is gone at the end."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with _progress() as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def prefetch_bars() -> Iterator[PrefetchBars]:
    """Shows the prefetch, a bar for each dataset; they are gone at the end."""
    if not sys.stderr.isatty():
        yield PrefetchBars(None)
        return
    with _progress() as progress:
        yield PrefetchBars(progress)


class PrefetchBars:
    """What a terminal shows while the gate is shut.

    Attributes:
        every: Seconds after which there may be something new to show.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.every = SELDOM if progress is None else REFRESH
        self._tasks: dict[str, TaskID] = {}

    def show(self, status: Status) -> None:
        """Bring the bars up to date."""
        if self._progress is None:
            return
        listed = [one for one in status.datasets if one.files]
        self._progress.update(self._task(STAGE), description=status.stage.value, visible=not listed)
        for one in listed:
            files = f"{one.files_done:,} of {one.files:,} files"
            self._progress.update(
                self._task(one.name),
                description=f"{one.name}: {files}" if one.name else files,
                total=one.bytes,
                completed=one.bytes_done,
            )

    def _task(self, name: str) -> TaskID:
        assert self._progress is not None  # noqa: S101 - `show` has asked
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task("", total=None)
        return self._tasks[name]


def _progress() -> Progress:
    # Loaded here: only a terminal needs it.
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
