"""The page about a dataset: what will be staged, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podferry.components.reports.document import Document, Table
from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import Problem
from podferry.contract.manifest import Manifest
from podferry.contract.memory_sum import Row
from podferry.contract.quantity import format_bytes

STAGED = ("reference", "files", "size")
MEMORY = ("what", "memory", "why")
NOTE = "Computed from the listed sizes, in whole pages of memory; nothing was transferred."


def memory_page(
    title: str, manifest: Manifest, rows: Iterable[Row], verdict: str, problems: Sequence[Problem]
) -> Document:
    """The page of a plan.

    Args:
        title: What was planned.
        manifest: What a reference to the dataset covers.
        rows: The memory sum.
        verdict: What to say if it fits.
        problems: Why it does not fit.
    """
    reference, files, size = str(reference_to(manifest)), manifest.files, manifest.bytes
    listed = ((reference, f"{files:,}", format_bytes(size)),)
    memory = tuple((row.what, format_bytes(row.bytes), row.why) for row in rows)
    tables = (Table("Dataset", STAGED, listed), Table("Memory", MEMORY, memory, NOTE))
    said = "It does not fit" if problems else verdict
    return Document(title, said, not problems, tables, notes=tuple(map(str, problems)))
