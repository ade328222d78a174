"""The page of writers says just what the table in the code says."""

from __future__ import annotations

from pathlib import Path

from podferry.sidecar.checkpoint.detect.framework_rules import (
    FRAMEWORK_RULES,
    IGNORED,
    UNFINISHED,
    FrameworkRule,
)
from podferry.sidecar.config.tuning import CheckpointSettings

PAGE = Path(__file__).parents[2] / "docs" / "writers.md"
HEADS = (
    "| writer | recognised by | comes last | without it | besides | alone | real library tried | source |",
    "|---|---|---|---|---|---|---|---|",
)


def names(patterns: tuple[str, ...], otherwise: str) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns) or otherwise


def row(writer: FrameworkRule) -> str:
    itself = "itself" if writer.signs else "the last close"
    last = itself if writer.last == writer.signs else names(writer.last, "nothing to rely on")
    cells = (
        writer.name,
        names(writer.signs, "any name"),
        last,
        "not whole" if last == itself else writer.without,
        writer.besides,
        "yes" if writer.alone else "no",
        writer.tried,
        writer.source or "none",
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    return "\n".join([*HEADS, *map(row, FRAMEWORK_RULES)])


def left_out() -> str:
    known = [(name, why) for name, why in UNFINISHED.items() if not name.endswith("[0-9a-f]")]
    return "\n".join(f"| `{name}` | {why} |" for name, why in [*known, *IGNORED.items()])


def test_the_table_is_the_codes() -> None:
    assert table() in PAGE.read_text(), f"write this into {PAGE.name}:\n{table()}"


def test_what_is_no_part_of_a_checkpoint_is_the_codes() -> None:
    assert left_out() in PAGE.read_text(), f"write this into {PAGE.name}:\n{left_out()}"


def test_the_pauses_are_the_settings() -> None:
    pauses = CheckpointSettings()
    text = " ".join(PAGE.read_text().split())
    assert (
        f"The short pause is {pauses.quiet_seconds:g} s, the long one {pauses.quiet_seconds_no_close:g} s"
        in text
    )
