"""`why` as the exit task of a pipeline, compiled and under KFP's local runner."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from pathlib import Path

import pytest
from google.protobuf import json_format
from kfp import dsl, local
from kfp.local import config

from podferry.components import dataset, why


@dsl.pipeline(name="explained")
def explained(uri: str):
    with dsl.ExitHandler(why()):
        dataset(uri)


def test_it_runs_after_everything_else_and_is_never_cached() -> None:
    @dsl.pipeline(name="p")
    def one(uri: str):
        with dsl.ExitHandler(why(image="team/podferry:7")):
            dataset(uri)

    spec = json_format.MessageToDict(one.pipeline_spec)
    task = spec["root"]["dag"]["tasks"]["why"]
    assert task["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED"
    assert not task["cachingOptions"].get("enableCache", False)
    assert task["inputs"]["parameters"]["run"]["runtimeValue"]["constant"] == dsl.PIPELINE_JOB_ID_PLACEHOLDER
    assert spec["deploymentSpec"]["executors"]["exec-why"]["container"]["image"] == "team/podferry:7"


def test_locally_it_says_that_it_needs_a_cluster(
    tmp_path: Path, digits: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    try:
        explained(uri=str(digits))
    finally:
        config.LocalExecutionConfig.instance = None
    assert "why explains runs on a cluster only" in capfd.readouterr().out
    (report,) = (tmp_path / "root").rglob("why/report")
    assert report.read_text().startswith("# The run's tasks")
