"""Web servers: nginx's index, and wget."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.nginx import nginx
from tests.support.server_binaries import installed, libraries


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    wget = str(installed("wget"))
    environment = libraries("wget")

    def peer(name: str, target: Path) -> list[str]:
        options = ["--recursive", "--no-parent", "--no-host-directories", "--cut-dirs=1", "--quiet"]
        return [wget, *options, "--reject=index.html*", "-P", str(target), f"http://{address}/{name}/"]

    with nginx(files, folder) as address:
        words = [str(installed("nginx")), "-v"]
        version = subprocess.run(words, capture_output=True, text=True, check=True).stderr
        yield Served(f"{version.partition(': ')[2].strip()}, wget", f"http://{address}", peer, environment)


SOURCE = Source("wget -r", serve)
