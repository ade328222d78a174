"""S3: versitygw, and s5cmd."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving import s5cmd

from sources.row import Served, Source
from tests.support.real_servers import versitygw
from tests.support.server_binaries import GO

KEY, SECRET = "key-of-tests", "secret-of-tests"


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with versitygw(folder, KEY, SECRET) as endpoint:
        environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }
        upload = s5cmd(endpoint, "cp", f"{files}/", "s3://bucket/")
        subprocess.run(upload, env=environment, check=True, capture_output=True)

        def peer(name: str, target: Path) -> list[str]:
            return s5cmd(endpoint, "cp", f"s3://bucket/{name}/*", f"{target}/")

        version = GO["versitygw"].rpartition("@")[2]
        yield Served(f"versitygw {version}", "s3://bucket", peer, environment)


SOURCE = Source("s5cmd cp", serve)
