"""Printing for people and for machines.

On a terminal tables are drawn by rich and fold long cells. Elsewhere (a pipe, a file) a row is one line, its
cells aligned with spaces, and nothing is ever cut off.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec

from podferry.contract.errors import Problem

GAP = "  "
AGES = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "min"), (0, 1, "s"))
"""(from how many seconds on, seconds of the unit, unit): two of a unit before it is used."""


def show_json(value: object) -> None:
    """Print one JSON document, indented."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print rows below their heads.

    Args:
        heads: Names of the columns.
        rows: One text a column.
        right: Names of the columns that hold figures: aligned at the right.
    """
    if on_terminal():
        _drawn(heads, rows, right)
        return
    for line in plain_lines([[head.upper() for head in heads], *rows], [head in right for head in heads]):
        click.echo(line)


def on_terminal() -> bool:
    """Whether a person reads the result as it appears."""
    return sys.stdout.isatty()


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair a line."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{name:<{width}}{GAP}{value}".rstrip())


def plain_lines(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Rows as lines whose columns are aligned; the last column is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def say(text: str) -> None:
    """One line beside the result: to standard error, so that a pipe holds the result alone."""
    click.echo(text, err=True)


def complain(problems: Sequence[Problem]) -> None:
    """Print what is wrong to standard error, one sentence a line."""
    for problem in problems:
        click.secho(f"podferry: {problem}", err=True, fg="red")


def age(created: datetime) -> str:
    """How long ago, in one unit: `12 s`, `3 h`, `9 d`."""
    seconds = max(time.time() - created.timestamp(), 0.0)
    size, unit = next((size, unit) for least, size, unit in AGES if seconds >= least)
    return f"{int(seconds // size)} {unit}"


def _drawn(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    # Loaded here: only a terminal needs it.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        # As text: a name such as `[red]` is no markup.
        table.add_row(*map(Text, row))
    Console().print(table)
