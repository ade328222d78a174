"""The page about a dataset that fits."""

from __future__ import annotations

from podferry.components.reports.memory_page import memory_page
from podferry.components.reports.render import html
from podferry.contract.memory_sum import Row


def test_what_will_be_staged_and_its_memory() -> None:
    rows = (Row("data volume", 3 << 20, "2 files in whole pages"), Row("pod", 1 << 30, "all of it"))
    page = memory_page("s3://a/b", "fits into 64Gi", ("s3://a/b#sha256=00", 2, 3 << 20), rows)
    dataset, memory = page.tables
    assert dataset.rows == (("s3://a/b#sha256=00", "2", "3.0 MiB"),)
    assert memory.rows == (
        ("data volume", "3.0 MiB", "2 files in whole pages"),
        ("pod", "1.0 GiB", "all of it"),
    )
    assert "nothing was transferred" in memory.note
    assert "fits into 64Gi" in html(page)
