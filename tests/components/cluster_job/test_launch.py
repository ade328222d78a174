"""The order of requests that make or take over a job; `tests/e2e/test_train_job.py` has a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from podferry.components.cluster_job import launch
from podferry.components.cluster_job.job_kind import TRAIN_JOB
from podferry.components.cluster_job.step_pod import StepIdentity
from podferry.contract.errors import AlreadyExists, Refused, Unavailable

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "step", "uid": "uid-2"}
STEP = StepIdentity("team", "run-1", "flow.root.train.executor", "flow", "train", OWNER)


class Answers:
    """Answers of an API server, one for each request; keeps the requests."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter(answers)
        self.requests: list[tuple[str, Any]] = []

    def _answer(self, request: str, body: Any = None) -> Any:
        self.requests.append((request, body))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def create(self, path: str, body: Any, *, dry_run: bool = False) -> Any:
        return self._answer("check" if dry_run else "create", {**body, "metadata": dict(body["metadata"])})

    def get(self, path: str) -> Any:
        return self._answer("get")

    def merge(self, path: str, patch: Any) -> Any:
        return self._answer("merge", patch)

    def delete(self, path: str, uid: str) -> None:
        self._answer("delete", uid)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.requests]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "POLL_SECONDS", 0.0)


def own(**metadata: Any) -> Any:
    found = {"name": STEP.job_name, "namespace": "team", "uid": "uid-1", "annotations": STEP.annotations}
    return {"metadata": found | metadata}


def made(api: Answers) -> Any:
    said: list[str] = []
    found = launch.create_or_attach(api, TRAIN_JOB, STEP, {"runtimeRef": {}}, said.append)  # type: ignore[arg-type]
    return found, said


def test_it_is_checked_without_an_owner_and_created_with_one() -> None:
    api = Answers({}, own())
    assert made(api) == (own(), [f"created TrainJob {STEP.job_name}"])
    (_, checked), (_, created) = api.requests
    assert api.names == ["check", "create"]
    assert "ownerReferences" not in checked["metadata"]
    assert created["metadata"]["ownerReferences"] == [OWNER]
    assert created["metadata"]["annotations"] == STEP.annotations


def test_a_creation_whose_answer_was_lost_is_attached_to() -> None:
    api = Answers({}, Unavailable.of("reset"), AlreadyExists.of("taken"), own(), own(uid="uid-1", x=1))
    found, said = made(api)
    assert found["metadata"]["x"] == 1
    assert api.names == ["check", "create", "check", "get", "merge"]
    assert api.requests[-1][1] == {"metadata": {"ownerReferences": [OWNER]}}
    assert "Trying again" in said[0]
    assert said[1] == f"attached to TrainJob {STEP.job_name} of an earlier attempt"


def test_a_job_that_is_being_deleted_is_waited_for() -> None:
    leaving = own(deletionTimestamp="2026-01-01T00:00:00Z")
    api = Answers(AlreadyExists.of("taken"), leaving, {}, own())
    assert made(api)[0] == own()
    assert api.names == ["check", "get", "check", "create"]


def test_a_failed_job_is_replaced() -> None:
    failed = own() | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    api = Answers(AlreadyExists.of("taken"), failed, None, {}, own(uid="uid-9"))
    assert made(api)[0]["metadata"]["uid"] == "uid-9"
    assert api.names == ["check", "get", "delete", "check", "create"]
    assert api.requests[2][1] == "uid-1"


def test_a_foreign_job_is_neither_changed_nor_deleted() -> None:
    api = Answers(AlreadyExists.of("taken"), own(annotations={}))
    with pytest.raises(Refused, match="is not of this step"):
        made(api)
    assert api.names == ["check", "get"]


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "PATIENCE", -1.0)
    leaving = own(deletionTimestamp="2026-01-01T00:00:00Z")
    with pytest.raises(Refused, match="is not deleted"):
        made(Answers(AlreadyExists.of("taken"), leaving))
    with pytest.raises(Refused, match="no answer"):
        made(Answers(Unavailable.of("no answer")))


def test_a_cancelled_creation_deletes_only_what_is_the_steps() -> None:
    api = Answers(own(), None)
    launch.delete_own(api, TRAIN_JOB, STEP)  # type: ignore[arg-type]
    assert api.requests == [("get", None), ("delete", "uid-1")]
    api = Answers(own(annotations={}))
    launch.delete_own(api, TRAIN_JOB, STEP)  # type: ignore[arg-type]
    assert api.names == ["get"]
