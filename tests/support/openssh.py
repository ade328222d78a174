"""OpenSSH's server for one user without privileges, on loopback.

It runs in a mount namespace of its own: there `/etc/passwd` has the user, and `/srv` the served folder and
all that the user needs, whatever the permissions of the directories above them. That takes root.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed, libraries

USER, PASSWORD = "user", "password"
UID = 54321
SERVED, FULL = "/srv/files", "/srv/full"
"""Paths at the server: of the folder, and of a file system of 256 KiB."""
PASSWD = f"""root:x:0:0::/root:/bin/sh
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
{USER}:x:{UID}:{UID}::/srv:/bin/sh
"""
SHADOW = f"""root:*:19000::::::
{USER}:$6$podferry$AYt1ScWW36pwfYz6/Ffw7CevfAcu3lKGqSiYHYsidbtcbBH5Q7OGg15Dw2ESmyR0vbRfj0NY9ELRZtZnKPiO/1:19000::::::
"""
"""The hash is that of `PASSWORD`."""
START = """set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount -t tmpfs tmpfs /srv
mkdir /srv/files
mount --bind "$2" /srv/files
mkdir /srv/full
mount -t tmpfs -o size=256k,mode=777 tmpfs /srv/full
cp "$1/user.pub" /srv/authorized_keys
cp "$4" /srv/sftp-server
chmod 644 /srv/authorized_keys
chmod 755 /srv /srv/sftp-server
exec "$3" -D -e -f "$1/sshd_config"
"""
CONFIG = """ListenAddress {address}
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile /srv/authorized_keys
StrictModes no
Subsystem sftp /srv/sftp-server
"""


@dataclass(frozen=True, slots=True)
class Sshd:
    """A running server.

    Attributes:
        address: `host:port`.
        known_hosts: Its line of `known_hosts`.
        private_key: The user's, as a file.
        port: Of the address.
    """

    address: str
    known_hosts: str
    private_key: Path
    port: int

    @property
    def credentials(self) -> dict[str, str]:
        """Of the user with the password."""
        return {"SFTP_USERNAME": USER, "SFTP_PASSWORD": PASSWORD, "SFTP_KNOWN_HOSTS": self.known_hosts}


@contextlib.contextmanager
def sshd(files: Path, folder: Path, *options: str) -> Iterator[Sshd]:
    """A server of `files`, which its user may change.

    Args:
        files: What it serves.
        folder: For its configuration and log; empty.
        options: More lines of its configuration.
    """
    command, server = sshd_command(files, folder, ("127.0.0.1", free_port()), *options)
    with running(command, server.port, folder / "log", **libraries("sshd")):
        yield server


def sshd_command(
    files: Path, folder: Path, address: tuple[str, int], *options: str
) -> tuple[list[str], Sshd]:
    """The command that starts a server at an address, with `libraries("sshd")`; see `sshd`."""
    if os.geteuid() != 0:
        raise RuntimeError("OpenSSH's server needs root: it serves another user")
    host, port = address
    program = Path(str(installed("sshd")))
    os.chown(files, UID, UID)
    (folder / "passwd").write_text(PASSWD)
    (folder / "shadow").write_text(SHADOW)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    config = CONFIG.format(address=host, port=port, folder=folder)
    (folder / "sshd_config").write_text("\n".join([config, *options, ""]))
    sftp = program.parents[1] / "lib/openssh/sftp-server"
    script = ["sh", "-c", START, "start", str(folder), str(files), str(program), str(sftp)]
    kind, key, *_ = (folder / "host.pub").read_text().split()
    server = Sshd(f"{host}:{port}", f"[{host}]:{port} {kind} {key}", folder / "user", port)
    return ["unshare", "-m", *script], server
