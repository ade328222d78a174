"""Google Cloud Storage: fake-gcs-server, and rclone with 16 transfers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rclone_peer import rclone_peer

from sources.row import Served, Source
from tests.support.real_servers import fake_gcs
from tests.support.server_binaries import GO


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with fake_gcs(folder) as endpoint:
        own = {"GOOGLE_SKIP_SIGNATURE": "true"}
        remote = {
            "TYPE": "google cloud storage",
            "ANONYMOUS": "true",
            "ENDPOINT": f"{endpoint}/storage/v1/",
            "BUCKET_POLICY_ONLY": "true",
        }
        peer, environment = rclone_peer(remote, files)
        version = GO["fake-gcs-server"].rpartition("@")[2]
        words = ("--endpoint", endpoint)
        yield Served(f"fake-gcs-server {version}", "gs://bucket", peer, {**own, **environment}, words)


SOURCE = Source("rclone copy", serve)
