"""What the harness's tests share: small pods, and the harness's commands as processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster.layout import BASE_IMAGE, Layout
from tests.cluster.process import ProcessId
from tests.cluster.supervisor import ROOT


def container(name: str, *command: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": BASE_IMAGE, "command": list(command), **more}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    ends = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5}
    metadata = {"name": name, "labels": {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**ends, **spec, "containers": [*containers]},
    }


def service(name: str, port: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def listening(port: int) -> dict[str, Any]:
    return {"tcpSocket": {"port": port}, "periodSeconds": 1}


def command_line(layout: Layout, *words: str) -> subprocess.Popen[bytes]:
    """Run the harness's command for a cluster, as a process that can be killed."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment |= {"PODFERRY_CLUSTER": layout.name, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "tests.cluster", *words], env=environment, cwd=ROOT)


def init_of(layout: Layout) -> ProcessId:
    process = ProcessId.load(layout.init_record)
    assert process
    return process


def running(words: bytes) -> bool:
    """Whether there is a process whose command line ends with these words."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            lines.append(path.read_bytes())
    return any(line.rstrip(b"\0").endswith(words) for line in lines)
