"""Progress bars on standard error, only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
    with _progress() as progress:
        if progress is None:
            yield lambda done, total: None
            return
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def prefetch_bars() -> Iterator[PrefetchBars]:
    """Show the prefetch, one bar per dataset; the bars disappear at the end."""
    with _progress() as progress:
        yield PrefetchBars(progress)


class PrefetchBars:
    """Shows the phase, then the datasets' progress, on a terminal; call `show` every `poll_seconds`."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.poll_seconds = POLL_SECONDS if progress is None else REFRESH_SECONDS
        self._tasks: dict[str, TaskID] = {}

    def show(self, status: Status) -> None:
        """Update the bars."""
        listed = [one for one in status.datasets if one.files]
        self._update(PHASE_ROW, description=status.phase.value, visible=not listed)
        for one in listed:
            files = f"{one.files_done:,} of {one.files:,} files"
            description = f"{one.name}: {files}" if one.name else files
            self._update(one.name, description=description, total=one.bytes, completed=one.bytes_done)

    def _update(self, row: str, **fields: Any) -> None:
        if self._progress is not None:
            if row not in self._tasks:
                self._tasks[row] = self._progress.add_task("", total=None)
            self._progress.update(self._tasks[row], **fields)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    # Imported here: only a terminal needs it.
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(compact=True),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress
