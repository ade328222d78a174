"""rclone as a server of a folder: a web server's index, with and without TLS, and SFTP."""

from __future__ import annotations

import contextlib
import datetime
import sysconfig
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.real_servers import free_port, running

PROGRAM = Path(sysconfig.get_path("scripts"), "rclone")


@contextlib.contextmanager
def rclone(folder: Path, kind: str, log: Path, *options: str, prefix: Sequence[str] = ()) -> Iterator[str]:
    """The address of the server, `host:port`.

    Args:
        folder: What it serves.
        kind: `http` or `sftp`, as in `rclone serve`.
        log: Its output; its files are next to it.
        options: More of them.
        prefix: Words that run a program where its files are.
    """
    port = free_port()
    own = ["--config", str(log.parent / "none"), "--cache-dir", str(log.parent / "cache")]
    command = [
        *prefix,
        str(PROGRAM),
        "serve",
        kind,
        str(folder),
        "--addr",
        f"127.0.0.1:{port}",
        *own,
        *options,
    ]
    with running(command, port, log):
        yield f"127.0.0.1:{port}"


def certificate_for_loopback(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    names = [x509.IPAddress(ip_address(address)) for address in ("127.0.0.1", "127.0.0.2", "::1")]
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    plain = serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    return files
