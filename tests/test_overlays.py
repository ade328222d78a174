"""Overlays and components of deploy/: complete; monitoring names real metrics."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.reserved_port import reserved_port
from tests.support.webhook_process import review, webhook_process

DEPLOY = Path(__file__).parents[1] / "deploy"
FOLDERS = sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml"))
MONITORING = DEPLOY / "components" / "monitoring"
NAME = re.compile(r"\b(?:podferry|apiserver|container)_[a-z0-9_]+\b")
KUBERNETES_METRICS = {
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_admission_duration_seconds_bucket",
    "container_memory_working_set_bytes",
}
"""Source: Kubernetes, "Metrics Reference"."""
Object = dict[str, Any]


def kustomization(folder: Path) -> Object:
    found: Object = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return found


def referred(found: Object) -> Iterator[str]:
    yield from found.get("resources", [])
    yield from found.get("components", [])
    yield from (patch["path"] for patch in found.get("patches", []) if "path" in patch)
    for made in found.get("configMapGenerator", []):
        yield from (file.partition("=")[2] for file in made["files"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_what_is_referred_to_exists_and_every_file_is_used(folder: Path) -> None:
    names = list(referred(kustomization(folder)))
    assert [name for name in names if not (folder / name).exists()] == []
    files = {path.name for path in folder.iterdir() if path.is_file()} - {"kustomization.yaml"}
    assert files == {name for name in names if (folder / name).is_file()}


def expressions() -> list[str]:
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]["groups"][0]["rules"]
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return [rule["expr"] for rule in rules] + [one["expr"] for panel in panels for one in panel["targets"]]


def exposed(folder: Path, pod: Object) -> set[str]:
    """Names of the metrics of a webhook that has decided on a pod and refused a request."""
    with reserved_port() as port, webhook_process(folder, f"--metrics-port={port}") as webhook:

        async def use() -> None:
            connection = await webhook.open()
            assert (await connection.post("/mutate", review(pod)))[0] == 200
            assert (await connection.post("/mutate", b"{}"))[0] == 400
            await connection.close()

        asyncio.run(use())
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return {re.split("[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


def test_alerts_and_dashboard_use_metrics_that_exist(tmp_path: Path) -> None:
    pod = {"metadata": {"name": "p", "annotations": {"podferry.io/datset": "x"}}, "spec": {"containers": []}}
    used = {name for text in expressions() for name in NAME.findall(text)}
    own = {name for name in used if name.startswith("podferry_")}
    found = {name for name in exposed(tmp_path, pod) if not name.endswith("_created")}
    assert own <= found
    assert used - own <= KUBERNETES_METRICS
    # Each metric is on the page for administrators; a histogram by its own name.
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    listed = {re.sub("_(bucket|count|sum)$", "", name) for name in found if name.startswith("podferry_")}
    assert sorted(listed) == sorted(set(re.findall(r"`(podferry_webhook_\w+)", page)))
