"""Prints results for people and for programs.

On a terminal, rich draws tables and folds long cells. Elsewhere (a pipe, a file) each row is one line, its
cells aligned with spaces, and nothing is cut off.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Collection, Sequence
from datetime import datetime

import click
import msgspec

from podferry.sidecar.runtime.colours import coloured

COLUMN_GAP = "  "
MIN_FOLDED = 16
"""Characters from which a column with folded cells is readable."""
AGE_UNITS = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "min"), (0, 1, "s"))
"""(minimum age in seconds, seconds per unit, unit): a unit is used from two of it on."""

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output format: text, or one JSON document.",
)


def print_json(value: object) -> None:
    """Print one JSON document, indented."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def print_yaml(value: object) -> None:
    """Print one YAML document."""
    import yaml  # noqa: PLC0415 - few verbs print it

    click.echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False), nl=False)


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    yellow: Collection[str] = (),
    optional: int = 0,
) -> None:
    """Print a table, one text per column in each row.

    Args:
        headers: Of the columns.
        rows: One text for each column.
        right: Columns to align right: numbers.
        yellow: Cells with one of these texts are yellow on a terminal.
        optional: How many of the last columns are left out where a terminal is too narrow.
    """
    if on_terminal():
        count = len(headers) - _left_out([headers, *rows], optional)
        shown = [row[:count] for row in rows]
        if _fits([headers[:count], *shown]):
            _draw_table(headers[:count], shown, right, yellow)
        else:
            _print_records(headers[:count], shown, yellow)
        return
    titles = [header.upper() for header in headers]
    for line in align_columns([titles, *rows], [header in right for header in headers]):
        click.echo(line)


def _left_out(rows: Sequence[Sequence[str]], optional: int) -> int:
    """How many of the last columns, at most `optional`, to leave out so that no cell is folded."""
    widths = [max(map(len, column)) + len(COLUMN_GAP) for column in zip(*rows, strict=True)]
    columns = shutil.get_terminal_size().columns
    fitting = (count for count in range(optional) if sum(widths[: len(widths) - count]) <= columns)
    return next(fitting, optional)


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        print(f"{name:<{width}}{COLUMN_GAP}{value}".rstrip())  # not click.echo: it would remove colours


def align_columns(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the rows as lines with aligned columns, without trailing spaces."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        COLUMN_GAP.join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def format_age(created: datetime) -> str:
    """Return the time since `created` in one unit: `12 s`, `3 h`, `9 d`."""
    seconds = max(time.time() - created.timestamp(), 0.0)
    size, unit = next((size, unit) for minimum, size, unit in AGE_UNITS if seconds >= minimum)
    return f"{int(seconds // size)} {unit}"


def _fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a table is readable in this terminal: if only its widest column has to be folded."""
    widths = sorted(max(map(len, column)) for column in zip(*rows, strict=True))
    narrow = sum(widths[:-1]) + len(COLUMN_GAP) * (len(widths) - 1)
    return narrow + min(widths[-1], MIN_FOLDED) <= shutil.get_terminal_size().columns


def _print_records(headers: Sequence[str], rows: Sequence[Sequence[str]], yellow: Collection[str]) -> None:
    """One line for each cell, and an empty one between rows: for narrow terminals."""
    for index, row in enumerate(rows):
        if index:
            click.echo()
        cells = [coloured(cell, "yellow" if cell in yellow else "", sys.stdout) for cell in row]
        print_pairs(list(zip(headers, cells, strict=True)))


def _draw_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], yellow: Collection[str]
) -> None:
    # Imported here: only a terminal needs rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    for row in rows:
        # As Text: a name such as `[red]` is not markup.
        table.add_row(*(Text(cell, style="yellow" if cell in yellow else "") for cell in row))
    Console().print(table)
