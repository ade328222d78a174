"""FTP: vsftpd, and lftp with eight transfers at a time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.openssh import PASSWORD, USER
from tests.support.server_binaries import installed, libraries
from tests.support.vsftpd import vsftpd


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with vsftpd(files, folder) as address:
        lftp = str(installed("lftp"))

        def peer(name: str, target: Path) -> list[str]:
            mirror = f"mirror -P 8 /{name} {target}; bye"
            return [lftp, "--norc", "-u", f"{USER},{PASSWORD}", "-e", mirror, f"ftp://{address}"]

        environment = {"FTP_USERNAME": USER, "FTP_PASSWORD": PASSWORD, **libraries("lftp")}
        shown = subprocess.run(
            [lftp, "--version"], capture_output=True, text=True, check=True, env={**libraries("lftp")}
        )
        version = shown.stdout.split("|")[1].strip()
        yield Served(f"vsftpd 3.0.3; {version}", f"ftp://{address}", peer, environment)


SOURCE = Source("lftp mirror -P 8", serve)
