"""HDFS: Apache Hadoop's servers and its shell."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.hadoop import Hadoop, hadoop
from tests.support.server_binaries import MAVEN


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with hadoop(folder) as found:
        yield served(found, files, f"hdfs://{found.address}")


def served(found: Hadoop, files: Path, root: str) -> Served:
    """The file system with all sets, put there by its own tool."""
    sets = sorted(str(path) for path in files.iterdir())
    found.shell("-put", *sets, "/")

    def peer(name: str, target: Path) -> list[str]:
        return found.command("org.apache.hadoop.fs.FsShell", "-get", f"/{name}", str(target))

    title = f"NameNode and DataNode of Apache Hadoop {MAVEN['hadoop']}, and its `hdfs dfs`"
    return Served(title, root, peer, {"HADOOP_USER_NAME": getpass.getuser()})


SOURCE = Source("hdfs dfs -get", serve)
