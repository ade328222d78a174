from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from podferry.sidecar.control.command_options import OPTIONS, PARSING, add_options


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
