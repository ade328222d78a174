from datetime import UTC, datetime

import pytest

from podferry.cli import output
from podferry.cli.output import align_columns, format_age, print_pairs, print_table
from podferry.storage.memory.store import CONTENTS


def test_a_terminal_folds_and_never_cuts(podferry, digits, monkeypatch):
    name = "very-[bold]-" + "long" * 40
    CONTENTS["digits"].objects[f"v1/{name}"] = b"1"
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("podferry.cli.output.on_terminal", lambda: True)
    out = podferry("dataset", "ls", digits).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60
    assert name in "".join(line[10:].strip() for line in out.splitlines())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
        (864_000, "10 d"),
    ],
)
def test_an_age_has_one_unit_from_two_of_it_on(monkeypatch, seconds, text):
    created = datetime(2026, 3, 1, tzinfo=UTC)
    monkeypatch.setattr(output.time, "time", lambda: created.timestamp() + seconds)
    assert format_age(created) == text


def test_columns_are_aligned_without_trailing_spaces(capsys):
    print_table(["name", "size", "x"], [["a", "12", ""], ["long", "3", "y"]], right=["size"])
    assert capsys.readouterr().out.splitlines() == ["NAME  SIZE  X", "a       12", "long     3  y"]
    assert align_columns([["a", "b"]], [False, True]) == ["a  b"]


@pytest.mark.parametrize(("columns", "shown"), [(8, "name"), (10, "name  b"), (80, "name  b  c")])
def test_optional_columns_are_left_out_on_a_narrow_terminal(capsys, monkeypatch, columns, shown):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("podferry.cli.output.on_terminal", lambda: True)
    print_table(["name", "b", "c"], [["1234", "1", "2"]], optional=2)
    assert capsys.readouterr().out.splitlines()[0].split() == shown.split()


def test_names_of_pairs_are_aligned(capsys):
    print_pairs([("a", "1"), ("long", ""), ("b", "2")])
    assert capsys.readouterr().out.splitlines() == ["a     1", "long", "b     2"]
    print_pairs([])
    assert capsys.readouterr().out == ""


def test_a_table_that_does_not_fit_is_a_list_of_records(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    headers = ["lineage", "commits", "confidence", "newest"]
    print_table(headers, [["fit", "2", "sure", "step-2"], ["tune", "1", "doubtful", "step-7"]])
    assert capsys.readouterr().out == (
        "lineage     fit\ncommits     2\nconfidence  sure\nnewest      step-2\n\n"
        "lineage     tune\ncommits     1\nconfidence  doubtful\nnewest      step-7\n"
    )
    print_table(["size", "name"], [["2 B", "a" * 40]], right=["size"])
    assert "size  name" in capsys.readouterr().out, "folded: only one column is too wide"
