import os
import pty
import sys

from podferry.cli.progress import bar


def test_a_terminal_is_shown_how_far_it_is(monkeypatch):
    leader, follower = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(follower, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with bar("restoring") as told:
            told(1_000_000, 4_000_000)
        shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "restoring" in shown
    assert "1.0/4.0 MB" in shown


def test_elsewhere_nothing_is_shown(capsys):
    with bar("restoring") as told:
        told(1, 4)
    assert capsys.readouterr() == ("", "")
