"""A pod that opted in and has no agent is named in one line."""

from __future__ import annotations

from typing import Any

import pytest

from podferry.trainer.own_pod import missing_injection, not_injected
from tests.support.pod_api_server import StandInApiServer


def pod(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"podferry.io/{key}": text for key, text in annotations.items()}}}


def test_a_pod_that_the_webhook_has_not_seen() -> None:
    problem = missing_injection(pod(dataset="s3://a/b", checkpoints="s3://a/c"))
    assert problem is not None
    assert problem.what == (
        "this pod has podferry.io/checkpoints, podferry.io/dataset, but no agent was injected"
    )
    assert problem.measured == "the webhook has not seen it"
    assert "serves this namespace" in problem.remedy


def test_a_pod_that_was_only_audited_says_so() -> None:
    problem = missing_injection(pod(dataset="s3://a/b", status="audited"))
    assert problem is not None
    assert problem.measured == "podferry.io/status: audited"


@pytest.mark.parametrize(
    "annotations", [{}, {"inject": "false", "dataset": "x"}, {"dataset": "pvc://a", "status": "shared"}]
)
def test_who_asked_for_no_agent_is_not_warned(annotations: dict[str, str]) -> None:
    assert missing_injection(pod(**annotations)) is None


def test_the_pod_is_asked_for_by_kfps_name_and_refusals_are_silent(api_server: StandInApiServer) -> None:
    api_server.has("pods/step-1", pod(dataset="s3://a/b"))
    assert not_injected(api_server.api, {"KFP_POD_NAME": "step-1"}) is not None
    api_server.forbids("pods/step-1")
    assert not_injected(api_server.api, {"KFP_POD_NAME": "step-1"}) is None
    assert not_injected(api_server.api, {"POD_NAME": "absent"}) is None
    assert not_injected(None, {}) is None
