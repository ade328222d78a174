"""Custom resource definitions of others, from their Go modules: nothing of theirs runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.process import run, wait_until

CERT_MANAGER = Path(__file__).parent / "cert_manager"
"""The folder whose go.mod has the version of cert-manager."""


def cert_manager_files() -> list[Path]:
    """Everything that cert-manager defines."""
    return sorted(
        (_module("github.com/cert-manager/cert-manager", CERT_MANAGER) / "deploy" / "crds").glob("*.yaml")
    )


def prometheus_operator_files() -> list[Path]:
    """What the component `monitoring` uses."""
    folder = _module("github.com/prometheus-operator/prometheus-operator@v0.85.0", Path("/"))
    names = ("podmonitors", "prometheusrules")
    return [
        folder / "example" / "prometheus-operator-crd" / f"monitoring.coreos.com_{name}.yaml"
        for name in names
    ]


def trainer_files(version: str) -> list[Path]:
    """Everything that a version of Kubeflow Trainer defines."""
    folder = _module(f"github.com/kubeflow/trainer/v2@v{version}", Path("/"))
    return sorted((folder / "manifests" / "base" / "crds").glob("trainer.kubeflow.org_*.yaml"))


def _module(name: str, folder: Path) -> Path:
    return Path(json.loads(run(["go", "mod", "download", "-json", name], cwd=folder, timeout=300))["Dir"])


@contextlib.contextmanager
def defined(cluster: Cluster, files: Sequence[Path]) -> Iterator[None]:
    """The definitions are there for the block; those that a cluster has stay as they are."""
    names = [f"customresourcedefinition/{_name(file)}" for file in files]
    absent = {name: str(file) for name, file in zip(names, files, strict=True) if not cluster.find(name)}
    try:
        for name, file in absent.items():
            cluster.kubectl("create", "-f", file)
            wait_until(f"{name} to be served", lambda name=name: _established(cluster, name), 30)
        yield
    finally:
        for name in absent:
            cluster.kubectl("delete", name, "--ignore-not-found", timeout=120)


def _established(cluster: Cluster, name: str) -> bool:
    """A condition that `kubectl wait` takes as an error while there are none yet."""
    conditions = (cluster.get(name).get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _name(file: Path) -> str:
    """Files are named `GROUP_PLURAL.yaml`."""
    group, _, plural = file.stem.partition("_")
    return f"{plural}.{group}"
