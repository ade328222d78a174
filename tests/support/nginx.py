"""nginx over a folder."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed

CONFIG = """\
daemon off;
{user}
worker_processes 1;
pid {own}/pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  charset utf-8;
  {temporary}
  server {{
    {listens}
    root {files};
    {directives}
  }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
INDEX = "autoindex on;"


def nginx_command(files: Path, own: Path, addresses: Sequence[str], directives: str = INDEX) -> list[str]:
    """The words that start the server.

    Args:
        files: What it serves.
        own: An empty folder for its own files.
        addresses: Where it listens.
        directives: Of its `server` block.
    """
    text = CONFIG.format(
        # As root it would change to a user who may not enter the folders of tests.
        user="user root;" if os.geteuid() == 0 else "",
        own=own,
        temporary="\n  ".join(f"{name}_temp_path {own}/{name};" for name in TEMPORARY),
        listens="\n    ".join(f"listen {address};" for address in addresses),
        files=files,
        directives=directives,
    )
    (own / "nginx.conf").write_text(text)
    return [str(installed("nginx")), "-c", str(own / "nginx.conf"), "-e", str(own / "errors")]


@contextlib.contextmanager
def nginx(files: Path, own: Path, directives: str = INDEX) -> Iterator[str]:
    """A server on loopback; its address, `host:port`. The arguments are those of `nginx_command`."""
    port = free_port()
    addresses = (f"127.0.0.1:{port}", f"[::1]:{port} ipv6only=on")
    with running(nginx_command(files, own, addresses, directives), port, own / "log"):
        yield f"127.0.0.1:{port}"


def password_file(file: Path, user: str, password: str) -> str:
    """The directives that ask for a password; writes the file of users."""
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - its format
    file.write_text(f"{user}:{{SHA}}{digest}\n")
    return f'auth_basic "tests"; auth_basic_user_file {file};'
