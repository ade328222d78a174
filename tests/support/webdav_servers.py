"""Real WebDAV servers over a folder: rclone and WsgiDAV."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.rclone import rclone
from tests.support.real_servers import free_port, running

USER, PASSWORD = "user", "pass word"
KEYS = {"WEBDAV_USERNAME": USER, "WEBDAV_PASSWORD": PASSWORD}


@contextlib.contextmanager
def rclone_webdav(files: Path, own: Path, *options: str, prefix: Sequence[str] = ()) -> Iterator[str]:
    """rclone's; yields `host:port`. `own` is an empty folder for its files, `prefix` as for `rclone`."""
    login = ["--user", USER, "--pass", PASSWORD]
    with rclone(files, "webdav", own / "log", *login, *options, prefix=prefix) as address:
        yield address


@contextlib.contextmanager
def wsgidav(files: Path, own: Path, prefix: Sequence[str] = ()) -> Iterator[str]:
    """WsgiDAV on cheroot, as `rclone_webdav`."""
    port = free_port()
    config = {
        "host": "127.0.0.1",
        "port": port,
        "server": "cheroot",
        "provider_mapping": {"/": str(files)},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
        "lock_storage": True,
        "property_manager": False,
        "verbose": 1,
    }
    (own / "config.json").write_text(json.dumps(config))
    command = [
        *prefix,
        sys.executable,
        "-m",
        "wsgidav.server.server_cli",
        "--config",
        str(own / "config.json"),
    ]
    with running(command, port, own / "log"):
        yield f"127.0.0.1:{port}"


def on_small_disk(files: Path, size: str) -> list[str]:
    """The prefix of a server whose files are on a disk of this size, such as `1m`; only it sees them."""
    mount = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, str(files)]


def on_read_only_disk(files: Path) -> list[str]:
    """The prefix of a server that may not change its files, and does not know that."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, str(files)]


SERVERS = {"rclone": rclone_webdav, "wsgidav": wsgidav}
