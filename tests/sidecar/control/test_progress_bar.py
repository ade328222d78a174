import os
import pty
import sys
from contextlib import contextmanager, suppress

import pytest

from podferry.contract.status import AgentPhase, DatasetStatus, Status
from podferry.sidecar.control.progress_bar import prefetch_bars, progress_bar

MANY = [
    DatasetStatus("s3://b/d", "/d", files=8, bytes=4 << 20, files_done=2, bytes_done=1 << 20),
    DatasetStatus("s3://b/v", "/v", files=1, bytes=2_000_000, files_done=0, bytes_done=500_000, name="val"),
]


class Terminal:
    """Replaces standard error.

    Attributes:
        shown: What was written there by the end.
    """

    shown = ""


@pytest.fixture
def terminal(monkeypatch):
    """A terminal for a block: pytest installs its own streams just before a test."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    @contextmanager
    def opened():
        leader, follower = pty.openpty()
        found = Terminal()
        with os.fdopen(follower, "w") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            yield found
        found.shown = b"".join(_read(leader)).decode()
        os.close(leader)

    return opened


def _read(leader):
    """Everything that was written: the kernel delivers it with a delay, in pieces."""
    with suppress(OSError):  # EIO is the end
        while part := os.read(leader, 1 << 16):
            yield part


def test_a_terminal_shows_the_progress(terminal):
    with terminal() as found, progress_bar("restoring") as on_progress:
        on_progress(1 << 20, 4 << 20)
    assert "restoring" in found.shown
    assert "1.0/4.0 MiB" in found.shown


def test_each_dataset_has_a_bar(terminal):
    with terminal() as found, prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PLANNING, [DatasetStatus("s3://b/d", "/d")]))
        bars.show(Status(AgentPhase.PREFETCHING, MANY))
        assert bars.poll_seconds < 1
    shown = found.shown
    assert "2 of 8 files" in shown
    assert "1.0/4.0 MiB" in shown
    assert "val: 0 of 1 files" in shown
    assert "planning" not in shown.rpartition("2 of 8 files")[2], "bars replace the phase"


def test_the_phase_is_shown_until_a_dataset_is_listed(terminal):
    with terminal() as found, prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PLANNING))
    assert "planning" in found.shown


def test_without_a_terminal_nothing_is_shown(capsys):
    with progress_bar("restoring") as on_progress:
        on_progress(1, 4)
    with prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PREFETCHING, MANY))
        assert bars.poll_seconds > 1
    assert capsys.readouterr() == ("", "")


def test_a_dumb_terminal_has_no_bars(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with terminal() as found, prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PLANNING))
        assert not bars.visible
    assert found.shown == ""


def test_hidden_bars_show_nothing(terminal):
    with terminal() as found, prefetch_bars(hidden=True) as bars:
        bars.show(Status(AgentPhase.PLANNING))
        assert not bars.visible
    assert found.shown == ""
