"""Web servers that pods reach: nginx, rclone's WebDAV, and an imitation of the Hugging Face Hub."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.e2e.bucket import free_port
from tests.e2e.source import Source
from tests.support.nginx import INDEX, nginx_command, password_file
from tests.support.rclone import PROGRAM
from tests.support.webdav_servers import KEYS, PASSWORD, USER

SET = "set"
"""Of the files, in the folder and at the server."""


@contextlib.contextmanager
def webdav(cluster: Cluster, files: Path) -> Iterator[Source]:
    """rclone, which holds commits, too."""
    address = f"{cluster.host_address}:{free_port(cluster)}"
    login = ["--user", USER, "--pass", PASSWORD, "--config", str(files / "none")]
    command = [str(PROGRAM), "serve", "webdav", str(files), "--addr", address, *login]
    environment = {"XDG_CACHE_HOME": str(files / "cache")}
    with cluster.run_in_network(command, port=int(address.rpartition(":")[2]), environment=environment):
        yield Source(f"webdav://{address}/{SET}", f"webdav://{address}/checkpoints", KEYS, {})


@contextlib.contextmanager
def http(cluster: Cluster, files: Path) -> Iterator[Source]:
    """nginx with a password; commits go to WebDAV."""
    host, port, own = cluster.host_address, free_port(cluster), files / "nginx"
    own.mkdir()
    directives = f"{INDEX} {password_file(own / 'users', 'reader', 'to read')}"
    secret = {"HTTP_USERNAME": "reader", "HTTP_PASSWORD": "to read"}
    command = nginx_command(files, own, [f"{host}:{port}"], directives)
    with webdav(cluster, files) as written, cluster.run_in_network(command, port=port):
        yield Source(f"http://{host}:{port}/{SET}", written.checkpoints, {**written.secret, **secret}, {})


@contextlib.contextmanager
def hf(cluster: Cluster, files: Path) -> Iterator[Source]:
    """The imitation of the Hub, from a folder of its own; commits go to WebDAV."""
    host, port, hub = cluster.host_address, free_port(cluster), files / "hub"
    hub.mkdir()
    (hub / SET).symlink_to(files / SET)
    command = [sys.executable, "-m", "tests.support.hub_server", str(hub), str(port), host]
    with webdav(cluster, files) as written, cluster.run_in_network(command, port=port):
        secret = {**written.secret, "HF_ENDPOINT": f"http://{host}:{port}"}
        yield Source(f"hf://datasets/sets/{SET}", written.checkpoints, secret, {})


WEB_SOURCES = {"webdav": webdav, "http": http, "hf": hf}
