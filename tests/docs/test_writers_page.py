"""`docs/writers.md` matches the table of framework rules in the code."""

from __future__ import annotations

import re
from pathlib import Path

from podferry.sidecar.checkpoint.detect.doubtful_writers import DOUBTFUL_WRITERS
from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, FrameworkRule
from podferry.sidecar.checkpoint.detect.unfinished_names import IGNORED_NAMES, UNFINISHED_NAMES
from podferry.sidecar.config.tuning import CheckpointSettings

REPEATED = re.compile(r"(\[[^]]+\])\1+")
PAGE = Path(__file__).parents[2] / "docs" / "writers.md"
COLUMNS = (
    *("framework", "recognised by", "written last", "without it", "notes", "proven by", "detects torn"),
    *("tested with", "source"),
)
HEADS = (f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}")


def names(patterns: tuple[str, ...], otherwise: str) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns) or otherwise


def proof(rule: FrameworkRule) -> str:
    """What proves the first checkpoint of a series."""
    if rule.proves:
        return f"the last file{', unless ' + names(rule.unless, '') + ' exists' if rule.unless else ''}"
    return "its format or its rename" if rule.detects_torn else "the save before, or a later save"


def row(rule: FrameworkRule) -> str:
    itself = "itself" if rule.recognised_by else "the last close"
    same = rule.written_last == rule.recognised_by
    cells = (
        rule.name,
        names(rule.recognised_by, "any name"),
        itself if same else names(rule.written_last, "nothing reliable"),
        "incomplete" if same or rule.blocking else "doubtful",
        rule.notes,
        proof(rule),
        "yes" if rule.detects_torn else "no",
        rule.tested_with,
        rule.source or "none",
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    return "\n".join([*HEADS, *map(row, FRAMEWORK_RULES)])


def ignored_names() -> str:
    """Repeated sets of characters are printed once, with their number, as in a regular expression."""
    known = [
        (REPEATED.sub(lambda m: f"{m[1]}{{{len(m[0]) // len(m[1])}}}", name), why)
        for name, why in UNFINISHED_NAMES.items()
    ]
    return "\n".join(f"| `{name}` | {why} |" for name, why in [*known, *IGNORED_NAMES.items()])


def doubtful_writers() -> str:
    columns = ("library or habit", "doubtful", "what cannot be seen", "what makes it sure", "hides errors")
    cells = [
        (one.library, one.which, one.reason, one.remedy, "yes" if one.hides_errors else "no")
        for one in DOUBTFUL_WRITERS
    ]
    rows = [f"| {' | '.join(row)} |" for row in [columns, *cells]]
    return "\n".join([rows[0], f"|{'---|' * len(columns)}", *rows[1:]])


def test_the_doubtful_writers_match_the_code() -> None:
    table = doubtful_writers()
    assert table in PAGE.read_text(), f"write this into {PAGE.name}:\n{table}"


def test_the_frameworks_match_the_code() -> None:
    assert table() in PAGE.read_text(), f"write this into {PAGE.name}:\n{table()}"


def test_the_ignored_names_match_the_code() -> None:
    assert ignored_names() in PAGE.read_text(), f"write this into {PAGE.name}:\n{ignored_names()}"


def test_the_pauses_match_the_settings() -> None:
    settings = CheckpointSettings()
    short, long = settings.quiet_seconds, settings.quiet_seconds_no_close
    text = " ".join(PAGE.read_text().split())
    assert f"after a short pause of {short:g} s, a doubtful one after a long pause of {long:g} s" in text
