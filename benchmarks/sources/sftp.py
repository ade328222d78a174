"""SFTP: OpenSSH's server and its client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.openssh import SERVED, USER, sshd


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with sshd(files, folder) as server:
        (folder / "known_hosts").write_text(server.known_hosts + "\n")
        options = [f"-oUserKnownHostsFile={folder}/known_hosts", f"-oIdentityFile={server.private_key}"]
        environment = {
            "SFTP_USERNAME": USER,
            "SFTP_PRIVATE_KEY": server.private_key.read_text(),
            "SFTP_KNOWN_HOSTS": server.known_hosts,
        }

        def peer(name: str, target: Path) -> list[str]:
            words = ["sftp", "-q", "-oBatchMode=yes", "-P", str(server.port), *options]
            return [*words, "-r", f"{USER}@127.0.0.1:{SERVED}/{name}", str(target)]

        version = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr
        title = f"sshd and sftp of {version.partition(',')[0].strip()}"
        yield Served(title, f"sftp://{server.address}{SERVED}", peer, environment)


SOURCE = Source("sftp -r", serve)
