import os
import pty
import sys
from contextlib import contextmanager, suppress

import pytest

from podferry.contract.status import AgentPhase, DatasetStatus, Status
from podferry.sidecar.control.progress_bar import bar, prefetch_bars

MANY = [
    DatasetStatus("s3://b/d", "/d", files=8, bytes=4_000_000, files_done=2, bytes_done=1_000_000),
    DatasetStatus("s3://b/v", "/v", files=1, bytes=2_000_000, files_done=0, bytes_done=500_000, name="val"),
]


class Terminal:
    """Stands in for standard error.

    Attributes:
        shown: What was written there by the end.
    """

    shown = ""


@pytest.fixture
def terminal(monkeypatch):
    """A terminal for the time of a block: pytest puts its own streams in place just before a test."""
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
    """All that was written: the kernel passes it on a moment later, and piece by piece."""
    with suppress(OSError):  # EIO stands for the end
        while part := os.read(leader, 1 << 16):
            yield part


def test_a_terminal_is_shown_how_far_it_is(terminal):
    with terminal() as found, bar("restoring") as told:
        told(1_000_000, 4_000_000)
    assert "restoring" in found.shown
    assert "1.0/4.0 MB" in found.shown


def test_each_dataset_has_a_bar(terminal):
    with terminal() as found, prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PLANNING, [DatasetStatus("s3://b/d", "/d")]))
        bars.show(Status(AgentPhase.PREFETCHING, MANY))
        assert bars.every < 1
    shown = found.shown
    assert "2 of 8 files" in shown
    assert "1.0/4.0 MB" in shown
    assert "val: 0 of 1 files" in shown
    assert "planning" not in shown.rpartition("2 of 8 files")[2], "what is listed takes the stage's place"


def test_before_anything_is_listed_the_stage_is_shown(terminal):
    with terminal() as found, prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PLANNING))
    assert "planning" in found.shown


def test_elsewhere_nothing_is_shown(capsys):
    with bar("restoring") as told:
        told(1, 4)
    with prefetch_bars() as bars:
        bars.show(Status(AgentPhase.PREFETCHING, MANY))
        assert bars.every > 1
    assert capsys.readouterr() == ("", "")
