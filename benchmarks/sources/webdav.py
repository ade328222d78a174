"""WebDAV: rclone's server and rclone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.rclone import PROGRAM
from tests.support.webdav_servers import KEYS, PASSWORD, USER, rclone_webdav


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with rclone_webdav(files, folder) as address:
        obscured = subprocess.run([PROGRAM, "obscure", PASSWORD], capture_output=True, text=True, check=True)
        configuration = folder / "rclone.conf"
        login = f"user = {USER}\npass = {obscured.stdout.strip()}\n"
        configuration.write_text(f"[dav]\ntype = webdav\nvendor = other\nurl = http://{address}\n{login}")

        def peer(name: str, target: Path) -> list[str]:
            return [str(PROGRAM), "copy", "--config", str(configuration), f"dav:{name}", str(target)]

        version = subprocess.run([PROGRAM, "version"], capture_output=True, text=True, check=True).stdout
        title = f"{version.partition(chr(10))[0]}, serving and copying"
        yield Served(title, f"webdav://{address}", peer, KEYS)


SOURCE = Source("rclone copy", serve)
