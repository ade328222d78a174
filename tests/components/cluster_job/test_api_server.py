from __future__ import annotations

import json

import pytest

from podferry.components.cluster_job.api_server import ApiServer, translated
from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    FerryError,
    InvalidSpec,
    NotFound,
    Refused,
    Unavailable,
)

DENIED = """admission webhook "templates.podferry.io" denied the request: two problems
podferry.io/datset: unknown annotation ('x'). Did you mean 'dataset'?"""


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Unauthorized", Unavailable),
        (403, 'trainjobs is forbidden: User "a" cannot create resource', AccessDenied),
        (403, DENIED, Refused),
        (422, DENIED, Refused),
        (404, "not found", NotFound),
        (409, "already exists", AlreadyExists),
        (400, 'strict decoding error: unknown field "spec.trainr"', InvalidSpec),
        (429, "too many requests", Unavailable),
        (503, "apiserver is shutting down", Unavailable),
    ],
)
def test_responses_become_the_error_tree(status: int, message: str, kind: type[FerryError]) -> None:
    error = translated("POST /x", status, json.dumps({"kind": "Status", "message": message}).encode())
    assert type(error) is kind
    assert message.splitlines()[-1].split(" (")[0] in str(error)


def test_each_line_of_a_refusal_is_a_problem() -> None:
    error = translated("POST /x", 422, json.dumps({"message": DENIED}))
    assert [one.what for one in error.problems] == DENIED.splitlines()


def test_a_body_that_is_no_status_is_shown() -> None:
    assert "upstream connect error" in str(translated("GET /x", 502, b"upstream connect error"))
    assert isinstance(translated("GET /x", 0, None), InvalidSpec)


def test_without_a_cluster_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InvalidSpec, match="Run the step in a cluster, or set KUBECONFIG"):
        ApiServer.connect()
