"""Azure: Azurite, and rclone with 16 transfers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rclone_peer import rclone_peer

from sources.row import Served, Source
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY, azurite
from tests.support.server_binaries import NPM


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with azurite(folder) as endpoint:
        keys = {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
        remote = {"TYPE": "azureblob", "ACCOUNT": AZURITE_ACCOUNT, "KEY": AZURITE_KEY, "ENDPOINT": endpoint}
        peer, environment = rclone_peer(remote, files)
        version = NPM["azurite"].rpartition("@")[2]
        words = ("--endpoint", endpoint)
        yield Served(f"Azurite {version}", "az://bucket", peer, {**keys, **environment}, words)


SOURCE = Source("rclone copy", serve)
