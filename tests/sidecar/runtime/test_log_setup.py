"""What a retry looks like in the log."""

import io
import json
import sys

import pytest
import stamina
import structlog

from podferry.contract.errors import Problem, Unavailable
from podferry.sidecar.runtime import log_setup
from podferry.sidecar.runtime.log_setup import configure_logs, configure_unless_done
from podferry.sidecar.runtime.outages import Outages


@pytest.fixture(autouse=True)
def new_outages(monkeypatch):
    monkeypatch.setattr(log_setup, "outages", Outages())
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


def retried(attempts):
    failure = Unavailable(
        Problem("the store does not answer", "connection refused", "Wait"), Problem("and", "more\nlines")
    )
    for attempt in stamina.retry_context(on=Unavailable, attempts=attempts, wait_initial=0, wait_jitter=0):
        with attempt:
            if attempt.num < attempts:
                raise failure


REASON = "the store does not answer (connection refused). Wait. and (more lines)."


def test_an_outage_is_one_line_for_people(capsys):
    configure_logs()
    retried(5)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f" retrying: {REASON}")


def test_a_line_is_one_write(monkeypatch):
    """Agent and supervisor share a stream: two writes could be torn apart by the other's."""
    written = []
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", written.append)
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logs(log_format="json")
    structlog.get_logger().info("started")
    assert [text.endswith("}\n") for text in written] == [True]


def test_json_on_request_has_every_field(capsys):
    configure_logs(log_format="json")
    retried(5)
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert record.pop("timestamp").endswith("Z")
    assert record == {"event": "retrying", "level": "warning", "reason": REASON}


def test_in_a_pod_logs_are_json(capsys, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    configure_logs()
    retried(2)
    assert json.loads(capsys.readouterr().err)["event"] == "retrying"


def test_every_retry_is_logged_for_debugging(capsys):
    configure_logs("debug")
    retried(3)
    first, second = capsys.readouterr().err.splitlines()
    assert REASON in first
    assert "0.0 s" in second


def test_retries_are_silent_below_the_level(capsys):
    configure_logs("error")
    retried(2)
    assert capsys.readouterr().err == ""


def test_a_verb_that_rarely_logs_keeps_what_is_configured(capsys):
    configure_unless_done()
    assert structlog.is_configured()
    retried(2)
    assert REASON in capsys.readouterr().err
    configure_logs("error")
    configure_unless_done()
    retried(2)
    assert capsys.readouterr().err == ""
