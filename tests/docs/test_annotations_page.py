"""The page of annotations lists every key just as the table in the code says."""

from __future__ import annotations

from pathlib import Path

from podferry.contract.annotation_keys import KEYS
from podferry.contract.variable_substitution import SOURCES

PAGE = Path(__file__).parents[2] / "docs" / "annotations.md"


def table() -> str:
    rows = [
        f"| `{key.name}`{', `.NAME`' if key.per_dataset else ''} | {key.default} | {key.help} |"
        for key in KEYS.values()
    ]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])


def test_the_table_is_the_codes() -> None:
    assert table() in PAGE.read_text(), f"write this into {PAGE.name}:\n{table()}"


def test_every_variable_is_explained() -> None:
    text = PAGE.read_text()
    assert [name for name in (*SOURCES, "inputs.NAME") if f"`$({name})`" not in text] == []
