"""HDFS that pods reach, by both protocols."""

from __future__ import annotations

import contextlib
import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.process import wait_until
from tests.e2e.source import Source

READY_SECONDS = 90


@contextlib.contextmanager
def _served(cluster: Cluster, files: Path, scheme: str) -> Iterator[Source]:
    folder = files / "hadoop"
    folder.mkdir()
    module = [sys.executable, "-m", "tests.support.hadoop"]
    command = [*module, str(folder), cluster.host_address, str(files / "set")]
    with cluster.run_in_network(command) as server:
        ready = folder / "ready"
        wait_until(
            "HDFS to start", lambda: ready.exists() or server.process.poll() is not None, READY_SECONDS
        )
        rpc, web = ready.read_text().split()
        root = f"{scheme}://{rpc if scheme == 'hdfs' else web}"
        user = {"HADOOP_USER_NAME": getpass.getuser()}
        yield Source(f"{root}/set", f"{root}/checkpoints", user, {})


@contextlib.contextmanager
def hdfs(cluster: Cluster, files: Path) -> Iterator[Source]:
    """By Hadoop's own protocols."""
    with _served(cluster, files, "hdfs") as found:
        yield found


@contextlib.contextmanager
def webhdfs(cluster: Cluster, files: Path) -> Iterator[Source]:
    """By REST."""
    with _served(cluster, files, "webhdfs") as found:
        yield found
