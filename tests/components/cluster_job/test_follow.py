"""What a step does with its job at the job's end, in outages and when it is cancelled.

The answers are scripted; `tests/e2e/test_train_job.py` has a real API server.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from podferry.components.cluster_job import follow
from podferry.components.cluster_job.follow import Cancelled, run_job
from podferry.components.cluster_job.job_kind import PADDLE_JOB, TRAIN_JOB, JobKind
from podferry.components.cluster_job.step_pod import StepIdentity
from podferry.contract.errors import AccessDenied, Changed, FerryError, NotFound, PermanentError, Unavailable

STEP = StepIdentity("team", "run-1", "flow.root.train.executor", "flow", "train")
FAILED = {"conditions": [{"type": "Failed", "status": "True"}], "phase": "Failed"}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}], "phase": "Completed"}
ENDED = {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-01T00:00:01Z"}
WORKER: Any = {
    "metadata": {"name": "p-0", "ownerReferences": [{"kind": "PaddleJob", "name": STEP.job_name}]},
    "status": {
        "phase": "Failed",
        "containerStatuses": [{"name": "trainer", "state": {"terminated": ENDED}}],
    },
}
WARNING = {
    "involvedObject": {"kind": "Job", "name": f"{STEP.job_name}-node-0"},
    "reason": "FailedCreate",
    "message": "exceeded quota",
    "lastTimestamp": "2026-01-01T00:00:00Z",
}


class Scripted:
    """An API server with one job: each look at it takes the next answer, the last one for ever."""

    namespace = "team"

    def __init__(self, *looks: Any, pods: Any = (), events: Any = ()) -> None:
        self._looks, self._pods, self._events = list(looks), pods, events
        self.deleted: list[str] = []
        self.log: str | Exception = "no GPU found"

    def create(self, path: str, body: Any, *, dry_run: bool = False) -> Any:
        return self._job({})

    def get(self, path: str, **query: Any) -> Any:
        if path.endswith(("/pods", "/events")):
            found = self._pods if path.endswith("/pods") else self._events
            if isinstance(found, Exception):
                raise found
            return {"items": list(found)}
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(look, Exception):
            raise look
        return look() if isinstance(look, Callable) else self._job(look)

    def _job(self, status: Any) -> Any:
        metadata = {
            "name": STEP.job_name,
            "namespace": "team",
            "uid": "uid-1",
            "annotations": STEP.annotations,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        return {"metadata": metadata, "status": status}

    def log_tail(self, pod: str, container: str, lines: int) -> str:
        if isinstance(self.log, Exception):
            raise self.log
        return self.log

    def delete(self, path: str, uid: str) -> None:
        self.deleted.append(uid)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.0)


def run(api: Scripted, kind: JobKind = TRAIN_JOB) -> None:
    run_job(api, kind, STEP, {})  # type: ignore[arg-type]


def test_a_job_that_succeeds_stays() -> None:
    api = Scripted({}, COMPLETE)
    run(api)
    assert api.deleted == []


@pytest.mark.parametrize(("kind", "deleted"), [(TRAIN_JOB, []), (PADDLE_JOB, ["uid-1"])])
def test_only_a_failed_job_whose_pods_keep_running_is_deleted(kind: JobKind, deleted: list[str]) -> None:
    api = Scripted(FAILED, pods=[WORKER])
    with pytest.raises(PermanentError) as caught:
        run(api, kind)
    assert api.deleted == deleted
    assert str(caught.value.problems[1]) == (
        "pod p-0, container trainer: exit code 3 (Error): its log ends with\nno GPU found."
    )


def test_a_log_that_cannot_be_read_hides_no_failure() -> None:
    api = Scripted(FAILED, pods=[WORKER])
    api.log = NotFound.of("the pod is gone")
    with pytest.raises(PermanentError, match=r"exit code 3 \(Error\)\."):
        run(api)


def test_an_outage_is_said_once_and_outlasted(capsys: pytest.CaptureFixture[str]) -> None:
    away = Unavailable.of("the API server does not answer")
    run(Scripted({}, away, away, away, COMPLETE))
    log = capsys.readouterr().out
    assert log.count("the API server does not answer") == 1
    assert "the API server answers again" in log


def test_an_api_server_that_does_not_know_its_roles_yet_is_outlasted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It answers 403 for some seconds after a restart."""
    denied = AccessDenied.of("trainjobs is forbidden")
    run(Scripted({}, denied, Unavailable.of("the API server does not answer"), denied, COMPLETE))
    assert capsys.readouterr().out.count("trainjobs is forbidden") == 1


@pytest.mark.parametrize(
    ("patience", "error"), [("OUTAGE_PATIENCE", Unavailable), ("DENIED_PATIENCE", AccessDenied)]
)
def test_a_long_outage_ends_the_step_and_not_the_job(
    monkeypatch: pytest.MonkeyPatch, patience: str, error: type[FerryError]
) -> None:
    monkeypatch.setattr(follow, patience, -1.0)
    api = Scripted({}, error.of("the API server does not answer"))
    with pytest.raises(error):
        run(api)
    assert api.deleted == []


def test_without_pods_and_events_the_job_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    denied = AccessDenied.of("pods is forbidden")
    run(Scripted({}, {}, COMPLETE, pods=denied, events=denied))
    assert capsys.readouterr().out.count("pods is forbidden") == 1


def test_warnings_about_what_the_job_made_are_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    earlier = WARNING | {"lastTimestamp": "2025-12-31T23:59:59Z", "reason": "Earlier"}
    other = WARNING | {"involvedObject": {"kind": "Job", "name": "other"}, "reason": "Other"}
    run(Scripted({}, COMPLETE, events=[WARNING, earlier, other]))
    log = capsys.readouterr().out
    assert f"Job {STEP.job_name}-node-0: FailedCreate: exceeded quota" in log
    assert "Earlier" not in log
    assert "Other" not in log


def test_a_job_that_is_gone_ends_the_step() -> None:
    with pytest.raises(Changed, match="was deleted while it ran"):
        run(Scripted({}, NotFound.of("gone")))


def test_sigterm_deletes_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    api = Scripted({}, lambda: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(Cancelled):
        run(api)
    assert api.deleted == ["uid-1"]
    assert "the step was cancelled" in capsys.readouterr().out
