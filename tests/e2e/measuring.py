"""What a pod costs, measured from outside: control groups, processes, the API server's answers."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.cgroups import hierarchies
from tests.cluster.cluster import Cluster
from tests.cluster.process import ClusterError
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace
from tests.e2e.review_stream import connection_to

PROCESSES = """
import json, pathlib
found = []
for place in pathlib.Path("/proc").glob("[0-9]*"):
    lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    words = (place / "cmdline").read_bytes().split(b"\\0")
    if b"podferry" in b" ".join(words) and "VmRSS" in lines:
        sizes = {name: int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM", "RssAnon")}
        found.append({"command": b" ".join(words[1:5]).decode(), **sizes})
print(json.dumps(found))
"""
STATUS = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8471/v1/status').read().decode())"


@dataclass(frozen=True)
class Charged:
    """Memory of one control group, bytes.

    Attributes:
        usage: All that is charged, cached files among it.
        peak: The most that was.
        files: Of memory volumes.
        own: Of processes.
    """

    usage: int
    peak: int
    files: int
    own: int


def charged(pod: Mapping[str, Any], container: str = "") -> Charged:
    """What the kernel charges to a pod, or to one of its containers. The cluster must run on this machine.

    Raises:
        ClusterError: The control group was not found.
    """
    uid = pod["metadata"]["uid"]
    names = {uid, uid.replace("-", "_")}
    wanted = _container_id(pod, container) if container else ""
    for mount, kind in hierarchies():
        if not (mount / "memory.stat").exists() and kind == "cgroup":
            continue
        for path, _, _ in os.walk(mount):
            place = Path(path)
            if wanted in place.name and any(name in path for name in names):
                return _read(place)
    raise ClusterError(f"no control group of pod {uid} {container} on this machine")


def _container_id(pod: Mapping[str, Any], name: str) -> str:
    status = pod["status"]
    every = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return next(str(one["containerID"]).rpartition("/")[2] for one in every if one["name"] == name)


def _read(place: Path) -> Charged:
    stat = dict(line.split() for line in (place / "memory.stat").read_text().splitlines())
    if (place / "memory.current").exists():
        usage, peak = (int((place / f"memory.{name}").read_text()) for name in ("current", "peak"))
        return Charged(usage, peak, int(stat["shmem"]), int(stat["anon"]))
    usage, peak = (int((place / f"memory.{name}_in_bytes").read_text()) for name in ("usage", "max_usage"))
    return Charged(usage, peak, int(stat["total_shmem"]), int(stat["total_rss"]))


def processes(cluster: Cluster, namespace: str, pod: str, container: str) -> list[dict[str, Any]]:
    """podferry's processes in a container: command, and `VmRSS`, `VmHWM`, `RssAnon` in bytes."""
    command = ("exec", pod, "-c", container, "--", "python3", "-c", PROCESSES)
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("-n", namespace, *command))
    return [one for one in found if PROCESSES[:20] not in one["command"]]


def agent_status(namespace: Namespace, pod: str) -> Any:
    """The status of a pod's agent."""
    return json.loads(namespace.exec(pod, "podferry", "python3", "-c", STATUS))


def creation_times(
    namespace: Namespace, cases: Mapping[str, Object], count: int = 45
) -> dict[str, list[float]]:
    """How long the API server takes to create each pod, milliseconds; without the first ones.

    One connection, one request at a time, the cases in turn; pods are named by number.
    """
    connection, headers = connection_to(namespace.cluster)
    headers = {"Content-Type": "application/json", **headers}
    path = f"/api/v1/namespaces/{namespace.name}/pods"
    times: dict[str, list[float]] = {name: [] for name in cases}
    with contextlib.closing(connection):
        for number, (name, manifest) in itertools.product(range(count), cases.items()):
            metadata = {**manifest["metadata"], "name": f"{manifest['metadata']['name']}-{number}"}
            body = json.dumps({**manifest, "metadata": metadata})
            times[name].append(_create(connection, path, body, headers))
    return {name: found[5:] for name, found in times.items()}  # the first ones open connections


def _create(
    connection: http.client.HTTPConnection, path: str, body: str, headers: Mapping[str, str]
) -> float:
    started = time.monotonic()
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != http.client.CREATED:
        raise ClusterError(f"{answer.status}: {text.decode()}")
    return (time.monotonic() - started) * 1000


def summary(found: list[float]) -> dict[str, float]:
    """Median and 95th percentile of milliseconds."""
    return {
        "median_ms": round(statistics.median(found), 1),
        "p95_ms": round(statistics.quantiles(found, n=20)[-1], 1),
    }
