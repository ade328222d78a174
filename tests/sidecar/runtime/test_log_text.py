import io
import re

import pytest

from podferry.sidecar.runtime.log_text import text_renderer


def rendered(level="info", **entry):
    line = text_renderer(io.StringIO())(None, level, {"level": level, **entry})
    assert re.match(r"podferry: \d\d:\d\d:\d\d ", line)
    return line[len("podferry: 00:00:00 ") :]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"event": "polling"}, "polling"),
        (
            {"event": "checkpoint durable", "name": "step-1", "sequence": 7, "bytes": 2048, "seconds": 0.03},
            "checkpoint durable: step-1, sequence 7, 2.0 KiB, 0.03 s",
        ),
        (
            {"event": "prefetching", "files": 1, "of_files": 3, "bytes": 10, "of_bytes": 2048, "eta": None},
            "prefetching: 1 file, of files 3, 10 B, of 2.0 KiB",
        ),
        ({"event": "retrying", "reason": "no answer (503). Wait."}, "retrying: no answer (503). Wait."),
        (
            {"event": "not durable", "checkpoints": ("a", "b"), "reasons": ["One.", "Two."], "why": ""},
            "not durable: checkpoints a, b: One. Two.",
        ),
        ({"event": "at", "bytes_per_second": 1 << 20}, "at: 1.0 MiB/s"),
        ({"event": "failed", "exception": "Traceback\nError"}, "failed\nTraceback\nError"),
    ],
)
def test_an_entry_is_a_line_for_people(entry, line):
    assert rendered(**entry) == line


def test_warnings_are_yellow_and_errors_red_where_there_are_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    render = text_renderer(io.StringIO())
    assert render(None, "warning", {"event": "a"}).startswith("\x1b[33m")
    assert render(None, "error", {"event": "a"}).startswith("\x1b[31m")
    assert render(None, "info", {"event": "a"}).startswith("podferry")
