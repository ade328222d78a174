"""Samba's server of one folder as the share `share`, on loopback."""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed, libraries

USER, PASSWORD, SHARE = "user", "password", "share"
LIMITED = "limited"
"""Another user, with the same password and the rights of `nobody`."""
KEYS = {"SMB_USERNAME": USER, "SMB_PASSWORD": PASSWORD}
CONFIG = """[global]
server role = standalone server
interfaces = 127.0.0.1 ::1
bind interfaces only = yes
smb ports = {port}
private dir = {folder}
lock directory = {folder}
state directory = {folder}
cache directory = {folder}
pid directory = {folder}
ncalrpc dir = {folder}/ncalrpc
passdb backend = smbpasswd:{folder}/passwd
username map = {folder}/users
map to guest = bad user
guest account = nobody
disable spoolss = yes
load printers = no
printcap name = /dev/null
log file = {folder}/log
{options}
[{share}]
path = /srv/files
read only = no
veto files = /vetoed/
{share_options}
[public]
path = /srv/files
guest ok = yes
read only = no
[private]
path = /srv/files
valid users = root
"""


START = ["unshare", "-m", "sh", "-c"]
SCRIPT = """set -e
mount -t tmpfs tmpfs /srv
mkdir /srv/files
mount --bind "$0" /srv/files
exec setsid "$@"
"""
"""Every user reaches the files there, whatever the permissions above them. When the server ends, it ends its
process group: a session of its own has no other process."""


@dataclass(frozen=True, slots=True)
class Samba:
    """A running server.

    Attributes:
        address: `host:port`.
        port: The same alone.
        config: The path of its configuration, for `smbclient`.
        files: What it serves.
    """

    address: str
    port: int
    config: Path
    files: Path


@contextlib.contextmanager
def samba(files: Path, folder: Path, *options: str, share: tuple[str, ...] = ()) -> Iterator[Samba]:
    """A server of `files`.

    Args:
        files: What it serves.
        folder: For its configuration and state; empty.
        options: More lines of its configuration.
        share: More lines for the share.
    """
    port = free_port()
    with running(server_command(files, folder, port, *options, share=share), port, folder / "output"):
        yield Samba(f"127.0.0.1:{port}", port, folder / "smb.conf", files)


def server_command(
    files: Path, folder: Path, port: int, *options: str, share: tuple[str, ...] = ()
) -> list[str]:
    """The words that run a server, after its configuration and users are written; see `samba`."""
    if os.geteuid() != 0:
        raise RuntimeError("Samba's server needs root: it serves several users")
    program = Path(str(installed("samba")))
    config, lines = folder / "smb.conf", {"options": "\n".join(options), "share_options": "\n".join(share)}
    config.write_text(CONFIG.format(port=port, folder=folder, share=SHARE, **lines))
    (folder / "users").write_text(f"{getpass.getuser()} = {USER}\nnobody = {LIMITED}\n")
    (folder / "passwd").touch()
    for user in (getpass.getuser(), "nobody"):
        command = [str(program.parents[1] / "bin/smbpasswd"), "-c", str(config), "-s", "-a", user]
        answers, environ = f"{PASSWORD}\n{PASSWORD}\n", {**os.environ, **libraries("samba")}
        subprocess.run(command, input=answers, text=True, check=True, capture_output=True, env=environ)
    serve = ["--foreground", "--no-process-group", "--debug-stdout", f"--configfile={config}"]
    found = [f"{name}={value}" for name, value in libraries("samba").items()]
    return ["env", *found, *START, SCRIPT, str(files), str(program), *serve]


def smbclient(server: Samba, command: str) -> list[str]:
    """The words that run a command of Samba's client."""
    program = Path(str(installed("samba"))).parents[1] / "bin/smbclient"
    place = ["-p", str(server.port), "-U", f"{USER}%{PASSWORD}", f"//127.0.0.1/{SHARE}"]
    return [str(program), "-s", str(server.config), *place, "-c", command]
