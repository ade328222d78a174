"""Progress bars on standard error, only if that is a terminal that can move its cursor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from podferry.contract.quantity import format_bytes
from podferry.contract.status import Status

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REFRESH_SECONDS = 0.2
"""Between two updates of the bars."""
POLL_SECONDS = 10.0
"""Between two checks without a terminal: a response that ends the wait comes at once all the same."""
MIN_WIDTH = 60
"""Columns of a terminal below which the bar itself would push the numbers into a second line."""
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
def prefetch_bars(*, hidden: bool = False) -> Iterator[PrefetchBars]:
    """Show the prefetch, one bar per dataset; the bars disappear at the end."""
    with nullcontext() if hidden else _progress() as progress:
        yield PrefetchBars(progress)


class PrefetchBars:
    """Shows the phase, then the datasets' progress, on a terminal; call `show` every `poll_seconds`."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.poll_seconds = POLL_SECONDS if progress is None else REFRESH_SECONDS
        self._tasks: dict[str, TaskID] = {}

    @property
    def visible(self) -> bool:
        """Whether there are any: not without a terminal."""
        return self._progress is not None

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
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    # Imported here: only a terminal needs it.
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Rate(bars.ProgressColumn):
        """The speed in binary units, like every size."""

        def render(self, task: bars.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{format_bytes(int(speed))}/s" if speed else "", style="progress.data.speed")

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(binary_units=True),
        Rate(),
        bars.TimeRemainingColumn(compact=True),
    )
    console = Console(stderr=True)
    shown = columns if console.width >= MIN_WIDTH else (columns[0], columns[2])
    with bars.Progress(*shown, console=console, transient=True) as progress:
        yield progress
