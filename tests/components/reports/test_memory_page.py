"""The page about a dataset and the memory that it needs."""

from __future__ import annotations

from podferry.components.reports.memory_page import memory_page
from podferry.contract.errors import Problem
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.memory_sum import Row

MANIFEST = Manifest("s3://a/b", "ab" * 32, 3 << 20, (Entry("x.bin", 1 << 20), Entry("y.bin", 2 << 20)))
ROWS = (Row("data volume", 3 << 20, "2 files in whole pages"), Row("pod", 1 << 30, "all of it"))


def test_what_will_be_staged_and_its_memory() -> None:
    page = memory_page("Dataset", MANIFEST, ROWS, "fits into 64Gi", ())
    dataset, memory = page.tables
    ((reference, *rest),) = dataset.rows
    assert reference.startswith("s3://a/b#sha256=")
    assert rest == ["2", "3.0 MiB"]
    assert memory.rows == (
        ("data volume", "3.0 MiB", "2 files in whole pages"),
        ("pod", "1.0 GiB", "all of it"),
    )
    assert "nothing was transferred" in memory.note
    assert (page.verdict, page.good) == ("fits into 64Gi", True)


def test_why_it_does_not_fit() -> None:
    page = memory_page("Dataset", MANIFEST, ROWS, "fits", (Problem("too large", "3 MiB", "Use more"),))
    assert (page.verdict, page.good) == ("It does not fit", False)
    assert page.notes == ("too large (3 MiB). Use more.",)
