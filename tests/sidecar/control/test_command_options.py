from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pytest

from podferry.sidecar.control.command_options import OPTIONS, PARSING, HelpFormatter, add_options


def parse(names: list[str], words: list[str]) -> argparse.Namespace:
    return add_options(argparse.ArgumentParser(), *names).parse_args(words)


def test_every_row_is_an_option_of_its_own() -> None:
    assert PARSING.keys() <= OPTIONS.keys()
    positional = {name: "x" for name in OPTIONS if not name.startswith("-")}
    options = {name.lstrip("-").replace("-", "_") for name in OPTIONS}
    assert vars(parse(list(OPTIONS), list(positional.values()))).keys() == options


def test_values_have_their_types() -> None:
    names = ["--include", "--exclude", "--termination-log", "--secret-dir"]
    found = parse(names, ["--include", "a", "--include", "b", "--termination-log", "/l"])
    assert (found.include, found.exclude) == (["a", "b"], [])
    assert (found.termination_log, found.secret_dir) == (Path("/l"), None)
    assert parse(["--include"], []).include == [], "a default is not shared between runs"


def test_the_agent_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODFERRY_AGENT", "http://here")
    assert parse(["--agent"], []).agent == "http://here"
    assert parse(["--agent"], ["--agent", "http://there"]).agent == "http://there"
    monkeypatch.delenv("PODFERRY_AGENT")
    assert parse(["--agent"], []).agent == ""


@pytest.mark.parametrize("columns", ["40", "200", "0", "wide", None])
def test_help_has_the_width_that_argparse_finds(monkeypatch: pytest.MonkeyPatch, columns: str | None) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    ours, theirs = (each("podferry wait") for each in (HelpFormatter, argparse.HelpFormatter))
    assert ours._width == theirs._width == shutil.get_terminal_size().columns - 2
