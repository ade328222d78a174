"""What a retry looks like in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import stamina

from podferry.contract.errors import Problem, Unavailable
from podferry.sidecar.runtime.log_setup import configure_logs


@pytest.fixture(autouse=True)
def default_hooks() -> Iterator[None]:
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


def retried(attempts: int) -> None:
    failure = Unavailable(
        Problem("the store does not answer", "connection refused", "Wait"), Problem("and", "more\nlines")
    )
    for attempt in stamina.retry_context(on=Unavailable, attempts=3, wait_initial=0, wait_jitter=0):
        with attempt:
            if attempt.num < attempts:
                raise failure


def test_a_retry_is_one_readable_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    retried(2)
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert record.pop("timestamp")
    assert record == {
        "event": "retrying",
        "level": "warning",
        "reason": "the store does not answer (connection refused). Wait. and (more lines).",
        "seconds": 0.0,
    }


def test_every_retry_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    retried(3)
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_retries_are_silent_below_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("error")
    retried(2)
    assert capsys.readouterr().err == ""
