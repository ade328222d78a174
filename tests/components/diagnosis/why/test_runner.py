"""The step reads its run's pods and logs, and never fails for a right that it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podferry.components.diagnosis.why.runner import explain_run, look
from tests.support.pod_api_server import StandInApiServer

LOGS = "/api/v1/namespaces/team/pods/failed/log"


def test_the_run_is_explained(api_server: StandInApiServer, pods: dict[str, dict[str, Any]]) -> None:
    api_server.has("pods", {"items": list(pods.values())})
    api_server.has("events", {"items": []})
    api_server.answers[LOGS] = (200, b"error: no bucket (s3://a). Create it.\n")
    found = look("run-1", api_server.api)
    assert found.verdict.startswith("4 of the run's tasks failed: ")
    assert {row[0] for row in found.tables[0].rows} == {"each (iteration 1)", "flaky", "produce", "cc"}
    assert ("each (iteration 1)", "no bucket", "s3://a", "Create it") in found.tables[0].rows
    (section,) = found.sections
    assert section.log == "error: no bucket (s3://a). Create it."
    assert found.notes == ()
    assert api_server.asked[0][0].endswith("/pods?labelSelector=pipeline%2Frunid%3Drun-1")


def test_without_a_right_to_logs_the_rest_is_there(
    api_server: StandInApiServer, pods: dict[str, dict[str, Any]]
) -> None:
    api_server.has("pods", {"items": [pods["failed"], pods["failed"]]})
    api_server.has("events", {"items": []})
    api_server.forbids("pods/failed/log")
    found = look("run-1", api_server.api)
    (note,) = found.notes
    assert "may not get pods/log" in note
    assert found.tables[0].rows[0][1] == "main: failed"


def test_without_a_right_to_events_it_says_so_and_explains_the_rest(
    api_server: StandInApiServer, pods: dict[str, dict[str, Any]]
) -> None:
    api_server.has("pods", {"items": [pods["too-big"]]})
    api_server.forbids("events")
    found = look("run-1", api_server.api)
    (note,) = found.notes
    assert "may not list events" in note
    assert found.tables[0].rows[0][1] == "no node can take the pod"


def test_a_pod_that_was_refused_is_found_in_the_events(
    api_server: StandInApiServer, pods: dict[str, dict[str, Any]]
) -> None:
    good = pods["good"]
    workflow = good["metadata"]["labels"]["workflows.argoproj.io/workflow"]
    node = f"{workflow}(0).root(0).train(0).executor(0)"
    event = {
        "metadata": {"annotations": {"workflows.argoproj.io/node-name": node}},
        "involvedObject": {"kind": "Workflow", "name": workflow},
        "reason": "WorkflowNodeError",
        "message": f"Error node {node}: admission webhook denied the request: no such Secret",
    }
    api_server.has("pods", {"items": [good]})
    api_server.has("events", {"items": [event]})
    found = look("run-1", api_server.api)
    assert found.good is False
    [row] = found.tables[0].rows
    assert row[:3] == (
        "train",
        "the pod could not be created",
        "admission webhook denied the request: no such Secret",
    )
    assert api_server.asked[1][0].endswith("/events?fieldSelector=type%3DWarning")


def test_without_a_right_to_pods_it_says_which_one(api_server: StandInApiServer) -> None:
    api_server.forbids("pods")
    found = look("run-1", api_server.api)
    assert "may not list pods" in found.notes[0]
    assert found.good is None


def test_a_run_without_pods(api_server: StandInApiServer) -> None:
    api_server.has("pods", {"items": []})
    api_server.has("events", {"items": []})
    assert (
        "the run has no pods in this namespace (pipeline/runid=run-1)"
        in look("run-1", api_server.api).notes[0]
    )


def test_outside_a_cluster_it_writes_that_and_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    explain_run("run-1", str(tmp_path / "report"))
    assert "on a cluster only" in (tmp_path / "report").read_text()
    assert "on a cluster only" in capsys.readouterr().out
