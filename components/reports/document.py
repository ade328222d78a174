"""What a page says, as plain values: steps fill it in, and `render` escapes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table; every row has a text for each column.

    Attributes:
        title: Above it.
        columns: Their names.
        rows: Their texts.
        note: Below it, such as how a number was computed.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: sentences, and the end of a log.

    Attributes:
        title: Its heading.
        lines: Sentences.
        log: Lines of a program, shown as they are.
    """

    title: str
    lines: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A page.

    Attributes:
        title: What it is about.
        verdict: One sentence: the result.
        good: Whether the result is good; None if it is neither.
        tables, sections: Its parts, in this order.
        notes: What limits the result, a sentence each.
    """

    title: str
    verdict: str
    good: bool | None = None
    tables: tuple[Table, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
