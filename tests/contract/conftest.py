"""Shared pods, as fixtures: recorded ones, and plain ones built from a few arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods"
EXECUTORS = sorted(path.stem for path in RECORDED.glob("executor-*.json"))
OTHERS = sorted(path.stem for path in RECORDED.glob("*.json") if not path.stem.startswith("executor-"))

Pod = dict[str, Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that request `executor_name` or `other_name` with every recorded pod of the kind."""
    for fixture, names in (("executor_name", EXECUTORS), ("other_name", OTHERS)):
        if fixture in metafunc.fixturenames:
            assert names
            metafunc.parametrize(fixture, names)


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Pod]:
    """The recorded pod of that name."""

    def read(name: str) -> Pod:
        pod: Pod = json.loads((RECORDED / f"{name}.json").read_text())
        return pod

    return read


@pytest.fixture(scope="session")
def owned() -> Callable[..., Pod]:
    """A pod with an owner of that kind and name, and these labels."""
    return _owned


@pytest.fixture(scope="session")
def executor() -> Callable[..., Pod]:
    """A KFP executor with these inputs."""
    return _executor


def _owned(kind: str, name: str, labels: dict[str, str] | None = None) -> Pod:
    owner = {"apiVersion": "x/v1", "kind": kind, "name": name, "controller": True}
    metadata = {"name": f"{name}-x7k2p", "namespace": "team", "labels": labels, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "i"}]}}


def _executor(
    given: dict[str, Any],
    spec: dict[str, Any] | None = None,
    node: str = "flow-abc(0).root(0).train(0).executor(0)",
    artifacts: dict[str, Any] | None = None,
) -> Pod:
    pod = _owned("Workflow", "flow-abc")
    pod["metadata"]["annotations"] = {"workflows.argoproj.io/node-name": node}
    inputs = {"parameterValues": given, "artifacts": artifacts or {}}
    component = {"executorLabel": "exec-fit", "inputDefinitions": spec or {}}
    pod["spec"]["containers"][0]["command"] = [
        *("launch", "--pipeline_name", "pipe", "--run_id=run-1"),
        *("--executor_input", json.dumps({"inputs": inputs})),
        *("--component_spec", json.dumps(component)),
    ]
    return pod
