"""WebHDFS: Apache Hadoop's servers; the shell reads by Hadoop's own protocol, which is the usual way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.hdfs import served
from sources.row import Served, Source
from tests.support.hadoop import hadoop


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with hadoop(folder) as found:
        yield served(found, files, f"webhdfs://{found.web}")


SOURCE = Source("hdfs dfs -get", serve)
