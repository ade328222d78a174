"""Servers that a user logs in to, in the network of pods: OpenSSH for SFTP, and vsftpd."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.e2e.bucket import free_port
from tests.e2e.source import Source
from tests.support.openssh import PASSWORD, SERVED, USER, sshd_command
from tests.support.server_binaries import libraries
from tests.support.vsftpd import vsftpd_command


@contextlib.contextmanager
def sftp(cluster: Cluster, files: Path) -> Iterator[Source]:
    """OpenSSH, with a key and the known host key in the Secret."""
    place = cluster.host_address, free_port(cluster)
    command, server = sshd_command(files, _folder(files, "sshd"), place)
    secret = {
        "SFTP_USERNAME": USER,
        "ssh-privatekey": server.private_key.read_text(),
        "known_hosts": server.known_hosts,
    }
    environment = {**server.credentials, "SFTP_PRIVATE_KEY": secret["ssh-privatekey"]}
    uri = f"sftp://{server.address}{SERVED}"
    with cluster.run_in_network(command, port=server.port, environment=libraries("sshd")):
        yield Source(f"{uri}/set", f"{uri}/checkpoints", secret, {}, environment)


@contextlib.contextmanager
def ftp(cluster: Cluster, files: Path) -> Iterator[Source]:
    """vsftpd, with a Secret of the type kubernetes.io/basic-auth."""
    host, port = cluster.host_address, free_port(cluster)
    command = vsftpd_command(files, _folder(files, "vsftpd"), (host, port))
    secret = {"username": USER, "password": PASSWORD}
    environment = {"FTP_USERNAME": USER, "FTP_PASSWORD": PASSWORD}
    uri = f"ftp://{host}:{port}"
    with cluster.run_in_network(command, port=port, environment=libraries("vsftpd")):
        yield Source(f"{uri}/set", f"{uri}/checkpoints", secret, {}, environment)


def _folder(files: Path, name: str) -> Path:
    """A folder of the server's own, next to the files."""
    folder = files.with_name(f"{files.name}-{name}")
    folder.mkdir()
    return folder


LOGIN_SOURCES: dict[str, Callable[[Cluster, Path], AbstractContextManager[Source]]] = {
    "sftp": sftp,
    "ftp": ftp,
}
