import sys

import pytest

from podferry.sidecar.runtime.colours import coloured, has_colours


class Terminal:
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("variable", "value", "has_them"),
    [
        ("TERM", "xterm", True),
        ("TERM", "dumb", False),
        ("NO_COLOR", "1", False),
        ("NO_COLOR", "", True),  # as https://no-color.org says
    ],
)
def test_a_terminal_has_colours_unless_it_is_dumb_or_the_user_wants_none(
    monkeypatch, variable, value, has_them
):
    monkeypatch.setenv(variable, value)
    assert has_colours(Terminal()) is has_them
    assert coloured("text", "red", Terminal()) == ("\x1b[31mtext\x1b[0m" if has_them else "text")


def test_a_pipe_gets_colours_only_on_request(monkeypatch):
    assert not has_colours(sys.stderr)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_colours(sys.stderr)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colours(sys.stderr)
