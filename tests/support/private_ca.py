"""A private certificate authority (CA), as a company has one, and server certificates that it issues."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class PrivateCa:
    """`pem` is its certificate. Like many companies' CAs it has no key identifiers."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("private CA of the tests")
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key, timedelta(hours=1))
        certificate = builder.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.pem = certificate.public_bytes(Encoding.PEM).decode()

    def server_context(self, *names: str, lifetime: timedelta = timedelta(hours=1)) -> ssl.SSLContext:
        """A server's TLS context with a certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(self._name, _name("server"), key, lifetime)
        certificate = builder.add_extension(_alternatives(names), critical=False)
        return _context(key, certificate.sign(self._key, hashes.SHA256()))


def self_signed_context(*names: str) -> tuple[ssl.SSLContext, str]:
    """A TLS context whose certificate is that of an authority, and this certificate as PEM."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("server and authority")
    basic = x509.BasicConstraints(ca=True, path_length=None)
    builder = _builder(name, name, key, timedelta(hours=1)).add_extension(basic, critical=True)
    certificate = builder.add_extension(_alternatives(names), critical=False).sign(key, hashes.SHA256())
    return _context(key, certificate), certificate.public_bytes(Encoding.PEM).decode()


def _context(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "both.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
        context.load_cert_chain(path)
    return context


def _alternatives(names: Iterable[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(list(map(_general_name, names)))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + lifetime)
    )
