"""vsftpd for one user without privileges, on loopback, in a mount namespace as OpenSSH's server has it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.support.openssh import PASSWD, SHADOW, UID
from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed, libraries

START = """set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
mount -t tmpfs tmpfs /etc/pam.d
cp "$1/pam" /etc/pam.d/vsftpd
mount -t tmpfs tmpfs /srv
mkdir /srv/files /srv/empty /srv/full
mount --bind "$2" /srv/files
mount -t tmpfs -o size=256k,mode=777 tmpfs /srv/full
exec "$3" "$1/vsftpd.conf"
"""
PAM = """auth required pam_unix.so
account required pam_unix.so
"""
CONFIG = """listen=YES
listen_address={host}
listen_port={port}
background=NO
anonymous_enable=NO
local_enable=YES
write_enable=YES
local_umask=022
local_root=/srv/files
chroot_local_user=YES
allow_writeable_chroot=YES
check_shell=NO
secure_chroot_dir=/srv/empty
seccomp_sandbox=NO
isolate_network=NO
xferlog_enable=NO
"""
FULL = "local_root=/srv/full"
"""An option: what is served has 256 KiB, and no file at first."""


@contextlib.contextmanager
def vsftpd(files: Path, folder: Path, *options: str) -> Iterator[str]:
    """The address of a server of `files`, `host:port`.

    Args:
        files: What it serves, and what its user may change.
        folder: For its configuration and log; empty.
        options: More lines of its configuration.
    """
    port = free_port()
    command = vsftpd_command(files, folder, ("127.0.0.1", port), *options)
    with running(command, port, folder / "log", **libraries("vsftpd")):
        yield f"127.0.0.1:{port}"


def vsftpd_command(files: Path, folder: Path, address: tuple[str, int], *options: str) -> list[str]:
    """The command that starts a server at an address, with `libraries("vsftpd")`; see `vsftpd`."""
    if os.geteuid() != 0:
        raise RuntimeError("vsftpd needs root: it serves another user")
    os.chown(files, UID, UID)
    texts = {"passwd": PASSWD, "shadow": SHADOW, "pam": PAM}
    texts["vsftpd.conf"] = "\n".join([CONFIG.format(host=address[0], port=address[1]), *options, ""])
    for name, text in texts.items():
        (folder / name).write_text(text)
    return ["unshare", "-m", "sh", "-c", START, "start", str(folder), str(files), str(installed("vsftpd"))]


def tls_options(certificate: Path, key: Path, *, implicit: bool = False) -> tuple[str, ...]:
    """Lines of a configuration that requires TLS, with a data connection that continues the session."""
    return (
        "ssl_enable=YES",
        f"rsa_cert_file={certificate}",
        f"rsa_private_key_file={key}",
        "force_local_logins_ssl=YES",
        "force_local_data_ssl=YES",
        "require_ssl_reuse=YES",
        "ssl_ciphers=HIGH",
        f"implicit_ssl={'YES' if implicit else 'NO'}",
    )
