"""What the demo prints while it runs: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from demo.results import Report
from podferry.contract.quantity import format_bytes

WIDTH = 120
"""Columns where there is no terminal."""


class Bar:
    """A progress that moves."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._progress.advance(self._task, count)

    def note(self, text: str) -> None:
        """The current step."""
        self._progress.update(self._task, description=text)

    def at(self, done: int, note: str) -> None:
        """So many are done in all."""
        self._progress.update(self._task, completed=done, description=note)


class Screen:
    """Where it is said."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)

    def step(self, number: int, text: str) -> None:
        """A part of the demo begins."""
        self._console.print(f"\n[bold cyan]{number}[/]  [bold]{text}[/]")

    def say(self, text: str, style: str = "") -> None:
        """One line of a part."""
        self._console.print(f"   {text}", style=style, markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, text: str, total: int | None = None) -> Iterator[Bar]:
        """A bar that disappears when the block ends; without a total it only shows activity."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        shown = columns if total is not None else columns[:2]
        quiet = not self._console.is_terminal
        with Progress(*shown, console=self._console, transient=True, disable=quiet) as progress:
            yield Bar(progress, progress.add_task(text, total=total))

    def failures(self, sentences: list[str]) -> None:
        """What is not as promised."""
        for sentence in sentences:
            self._console.print(f"demo: {sentence}.", style="bold red", markup=False, soft_wrap=True)

    def report(self, found: Report, imitated: tuple[str, ...]) -> None:
        """The values, for people."""
        self.table(rows(found))
        self.imitated(imitated)

    def table(self, lines: Iterable[tuple[str, str, str]]) -> None:
        """Name, value and meaning, a line each."""
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 3))
        table.add_column(style="dim")
        table.add_column(justify="right", style="bold")
        table.add_column(style="dim")
        for line in lines:
            table.add_row(*line)
        self._console.print(table)

    def imitated(self, sentences: Iterable[str]) -> None:
        """What is not real here."""
        self._console.print()
        for sentence in sentences:
            self._console.print(Padding(Text(f"Imitated: {sentence}", "dim"), (0, 0, 0, 3), expand=False))


def rows(found: Report) -> list[tuple[str, str, str]]:
    """Name, value and meaning of all that the report holds."""
    staged, downloaded, remote = found.waits
    return [
        (
            "dataset",
            f"{found.files:,} files",
            f"PNG images, {format_bytes(found.bytes)}",
        ),
        ("in memory after", f"{found.prefetch_s:.2f} s", f"{found.files_per_s:,.0f} files/s"),
        ("second run", f"{found.second_prefetch_s:.2f} s", "the files were still in memory"),
        ("waiting for data", f"{staged:.1f} s", "in both runs"),
        (
            "download first",
            f"{downloaded:.1f} s",
            f"computed: 2 downloads of {found.download_first_s:.1f} s with boto3, before each run",
        ),
        (
            "remote reading",
            f"{remote:.1f} s",
            f"computed: {found.epochs} epochs of {found.remote_epoch_s:.1f} s with boto3",
        ),
        ("killed in epoch", str(found.killed_at), "SIGKILL from outside, no warning"),
        ("resumed from", str(found.resumed_from), "verified, before training began"),
        ("epochs", str(found.epochs), "finished in both runs together"),
        ("checkpoints", f"{found.checkpoints_durable} durable", "committed at the destination"),
        ("training blocked", f"{found.blocked_s:.2f} s", "writing checkpoints, and at the end"),
        ("accuracy", f"{found.accuracy:.1%}", "of the test images"),
    ]
