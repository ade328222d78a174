import pytest

from podferry.storage.http import thread_cpu_time
from podferry.storage.http.thread_cpu_time import busy_seconds


@pytest.fixture
def schedstat(tmp_path, monkeypatch):
    """The system's file about this thread, and a thread that ran for two seconds."""
    monkeypatch.setattr(thread_cpu_time, "SCHEDSTAT", tmp_path / "schedstat")
    monkeypatch.setattr(thread_cpu_time.time, "thread_time", lambda: 2.0)
    return tmp_path / "schedstat"


def test_waiting_for_a_processor_counts_as_busy(schedstat):
    schedstat.write_text("2000000000 500000000 7\n")
    assert busy_seconds() == 2.5


@pytest.mark.parametrize("content", [None, "", "1", "1 x 2"])
def test_a_system_that_does_not_report_waiting_counts_what_ran(schedstat, content):
    if content is not None:
        schedstat.write_text(content)
    assert busy_seconds() == 2.0
