"""Prints tables and lines to the log of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from podferry.contract.memory_sum import Row
from podferry.contract.quantity import format_bytes

WIDTH = 120
"""Columns: a pod's log has no terminal, and 80 columns would wrap the reasons."""


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to standard output, which is the step's log."""
    table = Table(title=title, title_justify="left", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=WIDTH, highlight=False, markup=False).print(table)


def print_memory(title: str, rows: Iterable[Row]) -> None:
    """Print a memory sum."""
    lines = [(row.what, format_bytes(row.bytes), row.why) for row in rows]
    print_table(title, ("what", "memory", "why"), lines)


def print_line(text: str) -> None:
    """Print a line to standard output, which is the step's log."""
    Console(width=WIDTH, highlight=False, markup=False, soft_wrap=True).print(text)
