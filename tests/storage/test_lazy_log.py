"""Warnings of engines that rarely log."""

import subprocess
import sys

from structlog.testing import capture_logs

from podferry.storage import lazy_log


def test_a_warning_is_logged_with_its_fields():
    with capture_logs() as logs:
        lazy_log.warn("links", count=2)
    assert logs == [{"event": "links", "count": 2, "log_level": "warning"}]


def test_the_program_configures_its_logs_first(monkeypatch):
    called = []
    monkeypatch.setattr(lazy_log, "prepare_logs", [lambda: called.append("configured")])
    with capture_logs():
        lazy_log.warn("links")
    assert called == ["configured"]


def test_it_loads_no_logs_itself():
    program = "import podferry.storage.lazy_log, sys; print('structlog' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
