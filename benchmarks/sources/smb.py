"""SMB: Samba's server and its client."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sources.row import Served, Source
from tests.support.samba import KEYS, SHARE, samba, smbclient
from tests.support.server_binaries import libraries


@contextmanager
def serve(files: Path, folder: Path) -> Iterator[Served]:
    with samba(files, folder) as server:

        def peer(name: str, target: Path) -> list[str]:
            # It downloads to the current directory.
            words = smbclient(server, f'recurse ON; prompt OFF; cd "{name}"; lcd "{target}"; mget *')
            libs = [f"{key}={value}" for key, value in libraries("samba").items()]
            return ["sh", "-c", f"mkdir {shlex.quote(str(target))} && exec env {shlex.join([*libs, *words])}"]

        version = subprocess.run(
            [*smbclient(server, "")[:1], "--version"], capture_output=True, text=True, check=True,
            env=libraries("samba"),
        ).stdout.strip()  # fmt: skip
        yield Served(f"smbd and smbclient {version}", f"smb://{server.address}/{SHARE}", peer, KEYS)


SOURCE = Source("smbclient mget", serve)
