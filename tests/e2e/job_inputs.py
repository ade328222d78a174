"""Inputs of the steps `train_job` and `paddle_job`, the scripts of their pods, and what a job leaves."""

from __future__ import annotations

from typing import Any

from tests.cluster.layout import BASE_IMAGE
from tests.e2e.job_controllers import RUNTIME
from tests.e2e.job_steps import Steps
from tests.e2e.manifests import Object
from tests.e2e.namespace import STORE_SECRET, Namespace

TRAINS = """
import os, pathlib
files = sorted(path.name for path in pathlib.Path(os.environ["PODFERRY_DATASET"]).iterdir())
checkpoints = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
print("dataset", files, "restored", sorted(path.name for path in checkpoints.iterdir()))
(checkpoints / "step-7.tmp").write_bytes(b"weights" * 1000)
(checkpoints / "step-7.tmp").rename(checkpoints / "step-7.bin")
"""
FAILS = "print('starting'); print('no GPU found'); raise SystemExit(3)"
SLEEPS = "import time; time.sleep(3600)"
WAITS = """
import pathlib, time
while not pathlib.Path("/tmp/go").exists():
    time.sleep(0.2)
"""
"""Until the test says so."""


def train_job(script: str, **more: Any) -> Object:
    """Inputs of `train_job`."""
    trainer = {"image": BASE_IMAGE, "command": ["python3", "-u", "-c", script]}
    settings = more.pop("settings", {})
    inputs = {
        "runtime": RUNTIME,
        "runtime_kind": "ClusterTrainingRuntime",
        "trainer": trainer,
        "spec": {},
        "target": "node",
        "settings": settings,
    }
    return inputs | more


def stored(namespace: Namespace) -> Object:
    """Settings that open the bucket."""
    return {
        "secret": STORE_SECRET,
        "endpoint": namespace.bucket.endpoint,
        "dataset-size": "8Mi",
        "checkpoint-size": "1Mi",
    }


def role(replicas: int, script: str) -> Object:
    container = {
        "name": "paddle",
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-u", "-c", script],
    }
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}


def paddle_job(worker: Object, servers: Object, **more: Any) -> Object:
    """Inputs of `paddle_job`."""
    inputs = {"worker": worker, "servers": servers, "spec": {}, "settings": {}, "server_settings": {}}
    return inputs | more


def let_go(namespace: Namespace) -> None:
    """Let the pods that run `WAITS` end."""

    def running() -> str | None:
        for one in namespace.get("pods", "-l", "jobset.sigs.k8s.io/jobset-name")["items"]:
            if one["status"]["phase"] == "Running":
                return str(one["metadata"]["name"])
        return None

    namespace.exec(namespace.until("a running pod", running), "node", "touch", "/tmp/go")


def assert_gone(steps: Steps) -> None:
    """No job and no pod of it is left."""
    namespace = steps.namespace

    def gone() -> bool:
        pods = namespace.get("pods", "-l", "jobset.sigs.k8s.io/jobset-name")["items"]
        return not pods and not steps.jobs("trainjobs")

    namespace.until("the job and its pods to be gone", gone, 90)
