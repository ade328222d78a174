"""The page about a dataset: what will be staged, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.components.reports.document import Document, Table
from podferry.contract.memory_sum import Row
from podferry.contract.quantity import format_bytes

STAGED = ("reference", "files", "size")
MEMORY = ("what", "memory", "why")
NOTE = "Computed from the listed sizes, in whole pages of memory; nothing was transferred."


def memory_page(title: str, verdict: str, staged: tuple[str, int, int], rows: Iterable[Row]) -> Document:
    """The page of a plan that fits.

    Args:
        title: What was planned.
        verdict: That it fits, with numbers.
        staged: Reference, number of files and bytes.
        rows: The memory sum.
    """
    reference, files, size = staged
    listed = ((reference, f"{files:,}", format_bytes(size)),)
    memory = tuple((row.what, format_bytes(row.bytes), row.why) for row in rows)
    tables = (Table("Dataset", STAGED, listed), Table("Memory", MEMORY, memory, NOTE))
    return Document(title, verdict, good=True, tables=tables)
