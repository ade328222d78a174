"""nginx over a folder, on loopback in both versions of IP."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Iterator
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
    listen 127.0.0.1:{port};
    listen [::1]:{port} ipv6only=on;
    root {files};
    {directives}
  }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
INDEX = "autoindex on;"


@contextlib.contextmanager
def nginx(files: Path, own: Path, directives: str = INDEX) -> Iterator[str]:
    """The address of the server, `host:port`.

    Args:
        files: What it serves.
        own: An empty folder for its own files.
        directives: Of its `server` block.
    """
    port = free_port()
    temporary = "\n".join(f"{name}_temp_path {own}/{name};" for name in TEMPORARY)
    # As root it would change to a user who may not enter the folders of tests.
    user = "user root;" if os.geteuid() == 0 else ""
    text = CONFIG.format(
        user=user, own=own, temporary=temporary, port=port, files=files, directives=directives
    )
    (own / "nginx.conf").write_text(text)
    options = ["-c", str(own / "nginx.conf"), "-e", str(own / "errors")]
    with running([str(installed("nginx")), *options], port, own / "log"):
        yield f"127.0.0.1:{port}"


def password_file(file: Path, user: str, password: str) -> str:
    """The directives that ask for a password; writes the file of users."""
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - its format
    file.write_text(f"{user}:{{SHA}}{digest}\n")
    return f'auth_basic "tests"; auth_basic_user_file {file};'
