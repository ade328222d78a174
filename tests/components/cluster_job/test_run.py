"""How a step with a job ends: its message in the pod, and its exit code when it is cancelled."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from podferry.components.cluster_job import run
from podferry.components.cluster_job.follow import Cancelled, cancellable
from podferry.contract.errors import PermanentError, Problem


def test_the_reasons_are_the_containers_termination_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    monkeypatch.setattr(run, "TERMINATION_LOG", log)
    long = "x" * 2 * run.MAX_TERMINATION_MESSAGE
    with pytest.raises(PermanentError), run.reported():
        raise PermanentError(Problem("the job has failed"), Problem(long))
    assert log.read_text().startswith("the job has failed.\nxxx")
    assert log.stat().st_size == run.MAX_TERMINATION_MESSAGE


def test_outside_a_container_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TERMINATION_LOG", tmp_path / "none")
    with pytest.raises(PermanentError), run.reported():
        raise PermanentError.of("the job has failed")
    assert list(tmp_path.iterdir()) == []


def test_a_cancelled_step_exits_as_one_that_sigterm_ended() -> None:
    with pytest.raises(SystemExit) as caught, run.reported(), cancellable():
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 143


def test_the_former_handler_is_back_afterwards() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Cancelled), cancellable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == former
